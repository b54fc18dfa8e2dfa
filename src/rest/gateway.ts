import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { ConnectError } from '@connectrpc/connect';
import { type Method, methodName } from '../rpc/method.ts';
import type { AnyRequest, AnyResponse } from '../rpc/node-http.ts';
import { type AdapterFactory, adapterPartsOf } from './adapter.ts';
import { type Endpoint, endpointOf } from './endpoint.ts';
import { replyFromError, replyFromRefusal } from './error-reply.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { httpRulesOf } from './http-rule.ts';
import { Refusal } from './refusal.ts';
import { type Reply, sendReply } from './reply.ts';
import { parseTemplate } from './template.ts';
import { createTrie } from './trie.ts';

/** What the gateway works with. */
export interface GatewayDeps {
  /** The table; methods without a google.api.http rule are passed over. */
  readonly methods: readonly Method[];
  /** Answers to exact paths, before the rules. Default none. */
  readonly adapters?: readonly AdapterFactory[];
  /** Longest request body, unpacked. */
  readonly maxBodyBytes: number;
  /** Turns what a method or adapter throws into a wire error, logging what is unknown. `route` is a pattern, not a URL. */
  readonly errorFrom: (
    error: unknown,
    place: { route: string; signal: AbortSignal },
  ) => ConnectError;
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
  /** Whether HEAD is refused where GET is answered. */
  readonly noHead?: boolean;
}

/**
 * Compiles every rule of the table. Throws when a rule names an unknown field, two methods share a verb and path, or a message
 * has no REST form.
 */
export function createGateway(deps: GatewayDeps): Gateway {
  const exact = createTrie<Route>();
  const rules = createTrie<Route>();
  for (const method of deps.methods) {
    for (const rule of httpRulesOf(method.desc)) {
      if (method.kind !== 'unary') throw new Error(`${methodName(method.desc)} is not unary`);
      const name = `${rule.verb} ${rule.template.source}`;
      const noHead = method.desc.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS;
      rules.add(rule.verb, rule.template, { name, answer: endpointOf(rule, method), noHead });
    }
  }
  const parts = adapterPartsOf(deps.methods);
  for (const adapter of (deps.adapters ?? []).flatMap((factory) => factory(parts))) {
    for (const verb of adapter.methods) {
      const name = `${verb} ${adapter.path}`;
      const answer: Endpoint = (exchange) => adapter.handle(exchange);
      const noHead = adapter.getChanges === true;
      exact.add(verb, parseTemplate(adapter.path), { name, answer, noHead });
    }
  }

  function routeOf(verb: string, segments: readonly string[]): Route {
    const method = verb === 'HEAD' ? 'GET' : verb;
    const route = exact.find(method, segments) ?? rules.find(method, segments);
    const refused = verb === 'HEAD' && route?.noHead === true;
    if (route !== undefined && !refused) return route;
    const allowed = new Set([...exact.methods(segments), ...rules.methods(segments)]);
    if (allowed.size === 0) throw new Refusal(404, 'not_found', 'There is nothing at this path.');
    const get = exact.find('GET', segments) ?? rules.find('GET', segments);
    if (get !== undefined && get.noHead !== true) allowed.add('HEAD');
    const allow = [...allowed].sort().join(', ');
    throw new Refusal(405, 'method_not_allowed', `This path answers ${allow} only.`, {
      headers: { allow },
    });
  }

  async function answer(exchange: Exchange, path: string): Promise<Reply> {
    let name = 'no route';
    try {
      const segments = segmentsOf(path);
      const route = routeOf(exchange.method, segments);
      name = route.name;
      const reply = await route.answer(exchange, segments);
      const headers = exchange.handlerHeaders();
      return headers === undefined
        ? reply
        : { ...reply, headers: { ...headers, ...reply.headers } };
    } catch (error) {
      if (error instanceof Refusal) return replyFromRefusal(error);
      return replyFromError(deps.errorFrom(error, { route: name, signal: exchange.call.signal }));
    }
  }

  return {
    handle(request, response) {
      const { path, query } = targetOf(request.url ?? '/');
      const exchange = createExchange(request, response, query, deps.maxBodyBytes);
      answer(exchange, path)
        .then((reply) => sendReply(request, response, reply))
        .catch((error: unknown) => {
          // Only a reply with a header that HTTP cannot carry gets here.
          deps.errorFrom(error, { route: 'reply', signal: exchange.call.signal });
          response.destroy();
        });
    },
  };
}

const ROOT: readonly string[] = [];

/** A slash too many, at the end or doubled, is overlooked: bases that end in one are common. */
function segmentsOf(path: string): readonly string[] {
  return path === '/' ? ROOT : path.split('/').filter((segment) => segment !== '');
}

/** The path and the query of a request target, which may be absolute or lack the slash. */
function targetOf(url: string): { readonly path: string; readonly query: string } {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  return { path: path === '' ? '/' : path, query: mark < 0 ? '' : target.slice(mark + 1) };
}
