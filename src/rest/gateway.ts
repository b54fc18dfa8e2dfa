import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { ConnectError } from '@connectrpc/connect';
import type { Admission } from '../api/admission.ts';
import { type Method, methodName } from '../api/method.ts';
import { type Access, MAX_UNKNOWN_CALLER_BYTES, methodPolicy } from '../api/policy.ts';
import { type AnyRequest, type AnyResponse, breakOff } from '../http/node-http.ts';
import { createUnlimitedPools, type RoomPools } from '../http/room.ts';
import { type AdapterFactory, adapterToolkit } from './adapter.ts';
import { compileEndpoint, type Endpoint } from './endpoint.ts';
import { toErrorReply, toRefusalReply } from './error-reply.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { GatewayError } from './gateway-error.ts';
import { httpRules } from './http-rule.ts';
import { percentDecoded } from './query-string.ts';
import { byteCount, isStreamed, type Reply, sendReply } from './reply.ts';
import { parseTemplate } from './template.ts';
import { createTrie } from './trie.ts';

/** The collaborators of the gateway. */
export interface GatewayDeps {
  /** The table; methods without a google.api.http rule are skipped. */
  readonly methods: readonly Method[];
  /** Handlers of exact paths, matched before the rules. Default none. */
  readonly adapters?: readonly AdapterFactory[];
  /**
   * Checks callers before a body is read. Without it nothing is checked, for tables whose methods
   * check tokens themselves.
   */
  readonly admission?: Admission;
  /** The memory that calls share. Default unlimited. */
  readonly pools?: RoomPools;
  /** Longest request body of any route, unpacked. Default by the methods' policies. */
  readonly maxBodyBytes?: number;
  /**
   * Converts what a method or adapter throws to a wire error, and logs unknown errors. `route` is a
   * pattern, not a URL.
   */
  readonly toError: (error: unknown, place: { route: string; signal: AbortSignal }) => ConnectError;
}

/** The REST gateway. */
export interface Gateway {
  /** Answers one request, whatever it is. Never throws. */
  handle(request: AnyRequest, response: AnyResponse): void;
}

interface Route {
  /** `METHOD /path/{pattern}`, for the log. */
  readonly name: string;
  readonly answer: Endpoint;
  readonly access: Access;
  readonly maxBodyBytes: number;
  readonly maxFields: number;
  /** Which segment of the path is the token; undefined when none is. */
  readonly tokenAt?: number | undefined;
  /** Whether HEAD is refused where GET is answered. */
  readonly noHead?: boolean;
}

/**
 * Compiles every rule of the table. Throws when a rule names an unknown field, two methods share a
 * verb and path, or a message has no REST form.
 */
export function createGateway(deps: GatewayDeps): Gateway {
  const { admission, pools = createUnlimitedPools() } = deps;
  const longest = deps.maxBodyBytes ?? Number.POSITIVE_INFINITY;
  const exact = createTrie<Route>();
  const rules = createTrie<Route>();
  for (const method of deps.methods) {
    for (const rule of httpRules(method.desc)) {
      if (method.kind !== 'unary') throw new Error(`${methodName(method.desc)} is not unary`);
      const name = `${rule.verb} ${rule.template.source}`;
      const noHead = method.desc.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS;
      const { access, maxBytes, maxFields } = methodPolicy(method.desc);
      rules.add(rule.verb, rule.template, {
        name,
        answer: compileEndpoint(rule, method),
        access,
        maxBodyBytes: Math.min(maxBytes, longest),
        maxFields,
        tokenAt: rule.template.variables.find(({ field }) => field === 'token')?.from,
        noHead,
      });
    }
  }
  const toolkit = adapterToolkit(deps.methods);
  for (const adapter of (deps.adapters ?? []).flatMap((factory) => factory(toolkit))) {
    for (const verb of adapter.methods) {
      const name = `${verb} ${adapter.path}`;
      const answer: Endpoint = (exchange) => adapter.handle(exchange);
      const noHead = adapter.getChanges === true;
      const { maxBodyBytes = MAX_UNKNOWN_CALLER_BYTES } = adapter;
      exact.add(verb, parseTemplate(adapter.path), {
        name,
        answer,
        access: 'account',
        maxBodyBytes: Math.min(maxBodyBytes, longest),
        maxFields: MAX_ADAPTER_FIELDS,
        noHead,
      });
    }
  }

  function findRoute(verb: string, segments: readonly string[]): Route {
    const method = verb === 'HEAD' ? 'GET' : verb;
    const route = exact.find(method, segments) ?? rules.find(method, segments);
    const refused = verb === 'HEAD' && route?.noHead === true;
    if (route !== undefined && !refused) return route;
    const allowed = new Set([...exact.methods(segments), ...rules.methods(segments)]);
    if (allowed.size === 0)
      throw new GatewayError(404, 'not_found', 'There is nothing at this path.');
    const get = exact.find('GET', segments) ?? rules.find('GET', segments);
    if (get !== undefined && get.noHead !== true) allowed.add('HEAD');
    const allow = [...allowed].sort().join(', ');
    throw new GatewayError(405, 'method_not_allowed', `This path answers ${allow} only.`, {
      headers: { allow },
    });
  }

  async function answer(exchange: Exchange, path: string): Promise<Reply> {
    let name = 'no route';
    try {
      const segments = parseSegments(path);
      const route = findRoute(exchange.method, segments);
      name = route.name;
      if (exchange.hasBody) {
        exchange.limitBody(route.maxBodyBytes, route.maxFields);
        // The body of an unknown caller is not read.
        await admission?.admit(
          route.access,
          tokenInRequest(route, exchange, segments),
          exchange.call,
        );
      }
      const reply = await route.answer(exchange, segments);
      if (!isStreamed(reply.body)) {
        const length = byteCount(reply.body);
        const { room } = exchange.call;
        if (length > UNCOUNTED_REPLY_BYTES && room.held < length) {
          await room.take(length - room.held);
        }
      }
      return reply;
    } catch (error) {
      if (error instanceof GatewayError) return toRefusalReply(error);
      return toErrorReply(deps.toError(error, { route: name, signal: exchange.call.signal }));
    }
  }

  return {
    handle(request, response) {
      const { path, query } = parseTarget(request.url ?? '/');
      const exchange = createExchange(request, response, query, pools);
      answer(exchange, path)
        .then((reply) => sendReply(request, response, reply))
        .catch((error: unknown) => {
          // Only a reply with a header that HTTP cannot carry fails here.
          deps.toError(error, { route: 'reply', signal: exchange.call.signal });
          breakOff(response);
        });
    },
  };
}

/** Shorter replies stay in the connection's own buffers. */
const UNCOUNTED_REPLY_BYTES = 64 * 1024;

/** No adapter's body has more. */
const MAX_ADAPTER_FIELDS = 4_096;

/**
 * The token in the path, else in the query; empty when the request has neither, so that the bearer
 * token counts.
 */
function tokenInRequest(route: Route, exchange: Exchange, segments: readonly string[]): string {
  const { tokenAt } = route;
  if (tokenAt === undefined) return exchange.parameter('token') ?? '';
  return percentDecoded(segments[tokenAt] ?? '');
}

const ROOT: readonly string[] = [];

/** Empty segments are skipped, because base URLs often end in a slash. */
function parseSegments(path: string): readonly string[] {
  return path === '/' ? ROOT : path.split('/').filter((segment) => segment !== '');
}

/** The path and the query of a request target, which may be absolute or lack the leading slash. */
function parseTarget(url: string): { readonly path: string; readonly query: string } {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : target.slice(mark + 1) };
}
