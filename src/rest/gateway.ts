import { setMaxListeners } from 'node:events';
import type { ConnectError } from '@connectrpc/connect';
import type { Admission } from '../api/admission.ts';
import type { Call } from '../api/method.ts';
import { type AnyRequest, type AnyResponse, breakOff } from '../http/node-http.ts';
import { type RequestNote, requestNote } from '../http/request-note.ts';
import { parseTarget } from '../http/request-target.ts';
import { createUnlimitedPools, type RoomPools } from '../http/room.ts';
import { toErrorReply, toRefusalReply } from './error-reply.ts';
import { createExchange, type Exchange } from './exchange.ts';
import { GatewayError } from './gateway-error.ts';
import { percentDecoded } from './query-string.ts';
import { byteCount, isStreamed, type Reply, sendReply } from './reply.ts';
import { compileRoutes, type Route, type RouteTableDeps } from './route-table.ts';

/** The collaborators of the gateway. */
export interface GatewayDeps extends Omit<RouteTableDeps, 'draining'> {
  /**
   * Checks callers before a body is read. Without it nothing is checked, for tables whose methods
   * check tokens themselves.
   */
  readonly admission?: Admission;
  /** The memory that calls share. Default unlimited. */
  readonly pools?: RoomPools;
  /**
   * Converts what a method or adapter throws to a wire error, and logs unknown errors. `route` is a
   * pattern, not a URL.
   */
  readonly toError: (error: unknown, place: { route: string; call: Call }) => ConnectError;
}

/** The REST gateway. */
export interface Gateway {
  /** Answers one request, whatever it is. Never throws. */
  handle(request: AnyRequest, response: AnyResponse): void;
  /** Ends streams; their clients read a last line that says so. Other calls continue. */
  drain(): void;
}

/** Makes the gateway. Throws as {@link compileRoutes} does. */
export function createGateway(deps: GatewayDeps): Gateway {
  const { admission, pools = createUnlimitedPools() } = deps;
  const draining = new AbortController();
  setMaxListeners(0, draining.signal);
  const routes = compileRoutes({ ...deps, draining: draining.signal });

  async function answer(exchange: Exchange, path: string, note: RequestNote): Promise<Reply> {
    try {
      const segments = parseSegments(path);
      const route = routes.find(exchange.method, segments);
      note.route = route.name;
      if (exchange.hasBody) {
        exchange.limitBody(route.maxBodyBytes, route.maxFields);
        // The body of an unknown caller is not read.
        await admission?.admit(route, tokenInRequest(route, exchange, segments), exchange.call);
      }
      const reply = await route.answer(exchange, segments);
      if (!isStreamed(reply.body)) {
        const length = byteCount(reply.body);
        const { room } = exchange.call;
        const held = length > UNCOUNTED_REPLY_BYTES ? room.held() : length;
        if (held < length) await room.take(length - held);
      }
      return reply;
    } catch (error) {
      const { call } = exchange;
      if (error instanceof GatewayError) {
        call.failure = error.reason;
        return toRefusalReply(error, call.requestId);
      }
      return toErrorReply(deps.toError(error, { route: note.route, call }));
    }
  }

  return {
    drain: () => draining.abort(),
    handle(request, response) {
      const { path, query } = parseTarget(request.url ?? '/');
      const exchange = createExchange(request, response, query, pools);
      const note = requestNote(request);
      note.protocol = 'rest';
      note.call = exchange.call;
      answer(exchange, path, note)
        .then((reply) => sendReply(request, response, reply))
        .catch((error: unknown) => {
          // Only a reply with a header that HTTP cannot carry fails here.
          deps.toError(error, { route: 'reply', call: exchange.call });
          breakOff(response);
        });
    },
  };
}

/** Shorter replies stay in the connection's own buffers. */
const UNCOUNTED_REPLY_BYTES = 64 * 1024;

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
