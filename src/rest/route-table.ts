import { MethodOptions_IdempotencyLevel as IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { type Method, methodName } from '../api/method.ts';
import { type Access, MAX_UNKNOWN_CALLER_BYTES, methodPolicy } from '../api/policy.ts';
import { type AdapterFactory, adapterToolkit } from './adapter.ts';
import { compileEndpoint, type Endpoint } from './endpoint.ts';
import { GatewayError } from './gateway-error.ts';
import { type HttpRule, httpRules } from './http-rule.ts';
import { compileStreamEndpoint } from './stream-endpoint.ts';
import { parseTemplate } from './template.ts';
import { createTrie, type Trie } from './trie.ts';

/** What answers one verb and path, and within which limits. */
export interface Route {
  /** `METHOD /path/{pattern}`, for the log. */
  readonly name: string;
  readonly answer: Endpoint;
  readonly access: Access;
  /** The name of the method that answers; of an adapter, `name`. */
  readonly method: string;
  readonly maxBodyBytes: number;
  readonly maxFields: number;
  /** Which segment of the path is the token; undefined when none is. */
  readonly tokenAt?: number | undefined;
  /** Whether HEAD is refused where GET is answered. */
  readonly noHead: boolean;
}

/** The routes of the gateway: exact paths of adapters first, then the rules. */
export interface RouteTable {
  /** Throws a GatewayError: 404 for an unknown path, 405 for a verb that the path does not have. */
  find(verb: string, segments: readonly string[]): Route;
}

/** What the routes are compiled from. */
export interface RouteTableDeps {
  /** The table; methods without a google.api.http rule are skipped. */
  readonly methods: readonly Method[];
  /** Handlers of exact paths, matched before the rules. Default none. */
  readonly adapters?: readonly AdapterFactory[];
  /** Ends streams when it is aborted. Default never. */
  readonly draining?: AbortSignal;
  /** Longest request body of any route, unpacked. Default by the methods' policies. */
  readonly maxBodyBytes?: number;
}

/** No adapter's body has more. */
const MAX_ADAPTER_FIELDS = 4_096;

/**
 * Compiles every route. Throws when a rule names an unknown field, two methods share a verb and
 * path, or a message has no REST form.
 */
export function compileRoutes(deps: RouteTableDeps): RouteTable {
  const longest = deps.maxBodyBytes ?? Number.POSITIVE_INFINITY;
  const exact = compileAdapters(deps, longest);
  const rules = compileRules(deps, longest);

  return {
    find(verb, segments) {
      const method = verb === 'HEAD' ? 'GET' : verb;
      const route = exact.find(method, segments) ?? rules.find(method, segments);
      const isRefused = verb === 'HEAD' && route?.noHead === true;
      if (route !== undefined && !isRefused) return route;
      const allowed = new Set([...exact.methods(segments), ...rules.methods(segments)]);
      if (allowed.size === 0) throw nothingThere(segments);
      const get = exact.find('GET', segments) ?? rules.find('GET', segments);
      if (get?.noHead === false) allowed.add('HEAD');
      const allow = [...allowed].sort().join(', ');
      throw new GatewayError(405, 'method_not_allowed', `This path answers ${allow} only.`, {
        headers: { allow },
      });
    },
  };
}

/** The path of an RPC method: a service with its package, and a name. */
const RPC_SERVICE = /^(?:[a-z]\w*\.)+[A-Z]\w*$/;

/** Clients of Connect take the code and the message of their error from `code` and `message`. */
function nothingThere(segments: readonly string[]): GatewayError {
  const [service = ''] = segments;
  if (segments.length !== 2 || !RPC_SERVICE.test(service)) {
    return new GatewayError(404, 'not_found', 'There is nothing at this path.');
  }
  const message = `There is no method ${segments.join('/')}.`;
  return new GatewayError(404, 'unimplemented', message, { facts: { message } });
}

function compileRules({ methods, draining = NEVER }: RouteTableDeps, longest: number): Trie<Route> {
  const routes = createTrie<Route>();
  for (const method of methods) {
    for (const rule of httpRules(method.desc)) {
      const { access, maxBytes, maxFields } = methodPolicy(method.desc);
      routes.add(rule.verb, rule.template, {
        name: `${rule.verb} ${rule.template.source}`,
        answer: compileMethod(rule, method, draining),
        access,
        method: method.desc.name,
        maxBodyBytes: Math.min(maxBytes, longest),
        maxFields,
        tokenAt: rule.template.variables.find(({ field }) => field === 'token')?.from,
        noHead: method.desc.idempotency !== IdempotencyLevel.NO_SIDE_EFFECTS,
      });
    }
  }
  return routes;
}

const NEVER = new AbortController().signal;

function compileMethod(rule: HttpRule, method: Method, draining: AbortSignal): Endpoint {
  if (method.kind === 'unary') return compileEndpoint(rule, method);
  if (method.kind === 'server_streaming') return compileStreamEndpoint(rule, method, draining);
  throw new Error(`${methodName(method.desc)} takes a stream of requests`);
}

function compileAdapters({ methods, adapters = [] }: RouteTableDeps, longest: number): Trie<Route> {
  const routes = createTrie<Route>();
  const toolkit = adapterToolkit(methods);
  for (const adapter of adapters.flatMap((factory) => factory(toolkit))) {
    const { maxBodyBytes = MAX_UNKNOWN_CALLER_BYTES } = adapter;
    for (const verb of adapter.methods) {
      const name = `${verb} ${adapter.path}`;
      routes.add(verb, parseTemplate(adapter.path), {
        name,
        method: name,
        answer: (exchange) => adapter.handle(exchange),
        access: 'account',
        maxBodyBytes: Math.min(maxBodyBytes, longest),
        maxFields: MAX_ADAPTER_FIELDS,
        noHead: adapter.getChanges === true,
      });
    }
  }
  return routes;
}
