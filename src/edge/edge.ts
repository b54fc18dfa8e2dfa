import type { IncomingMessage, Server } from 'node:http';
import { Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Logger } from '../domain/logger.ts';
import { noTracing, type Tracing } from '../domain/tracing.ts';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { requestNote } from '../http/request-note.ts';
import { type ClientAddresses, createClientAddresses } from './client-address.ts';
import { createConnectionLimit } from './connection-limit.ts';
import { DEFAULT_EDGE_LIMITS, type EdgeLimits } from './edge-limits.ts';
import { createHalfOpenRequests } from './half-open.ts';
import {
  createHttp1Server,
  createHttp2Server,
  type EdgeTls,
  endWithTrailers,
} from './http-servers.ts';
import { demandHttp1 } from './http1-required.ts';
import { createOpenConnections } from './open-connections.ts';
import { presentedToken } from './presented-token.ts';
import { createProtocolMux } from './protocol-mux.ts';
import { readProxyHeader } from './proxy-header.ts';
import { answerRefusedRequests, refuseMalformed } from './refused-requests.ts';
import { identifyRequest, type LoggedRequests, logRequest } from './request-log.ts';
import { createRoutes, type RequestHandler, type RoutesDeps } from './routes.ts';
import { createStalledReplies, type StalledReplies } from './stalled-replies.ts';
import { createStrangerQueue } from './stranger-queue.ts';
import { traceRequest } from './trace-request.ts';

/** At most one log line about refused connections in this time. */
const REFUSALS_LOG_MS = 60_000;

/** The collaborators of the edge. */
export interface EdgeDeps extends Omit<RoutesDeps, 'rpc' | 'rest' | 'onFailure'> {
  readonly rpc: RoutesDeps['rpc'] & {
    /** Whether the token in the header of a request decides before its body is read. */
    checksHeader(request: AnyRequest): boolean;
    drain(): void;
  };
  readonly rest: RoutesDeps['rest'] & { drain(): void };
  /** If present, the port speaks TLS, and ALPN selects the protocol. */
  readonly tls?: EdgeTls;
  /** CIDRs of the operator's proxies, which tell the addresses of clients. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Gives a request of the console the token of its session. Default: there are no sessions. */
  readonly authorize?: (request: AnyRequest) => void;
  /** Those that differ from {@link DEFAULT_EDGE_LIMITS}. */
  readonly limits?: Partial<EdgeLimits>;
  /** Whether a token is known to be right; calls with another one let those go first. */
  readonly knowsToken: (token: string) => boolean;
  readonly logger: Logger;
  /** Default `off`. */
  readonly logged?: LoggedRequests;
  /** Default: none. */
  readonly tracing?: Tracing;
}

/** The one port of the service. */
export interface Edge {
  /**
   * Starts to listen. Resolves with the port, which is a free one for 0. Rejects when the address
   * is not available.
   */
  listen(host: string, port: number): Promise<number>;
  /** Uses another certificate for new connections, if the port speaks TLS. */
  useCertificate(certificate: Pick<EdgeTls, 'cert' | 'key'>): void;
  /**
   * Closes: no new connections, idle ones closed, GOAWAY to HTTP/2 clients, streams ended. Requests
   * in progress get `drainMs` to finish, then the remaining connections are destroyed. Resolves
   * when every connection is closed.
   */
  close(drainMs: number): Promise<void>;
}

/** Makes the edge; it opens nothing. */
export function createEdge(deps: EdgeDeps): Edge {
  const { tracing = noTracing } = deps;
  const limits = { ...DEFAULT_EDGE_LIMITS, ...deps.limits };
  const log = { logger: deps.logger, logged: deps.logged ?? 'off' };
  const addresses = createClientAddresses(deps.trustedProxies ?? []);
  let stalled: StalledReplies | undefined;

  const halfOpen = createHalfOpenRequests(limits);
  const routes = createRoutes({
    ...deps,
    rpc: {
      handles: deps.rpc.handles,
      handle(request, response) {
        const handle = (): void => deps.rpc.handle(request, response);
        // The token is checked before anything is read, and decides at once.
        if (deps.rpc.checksHeader(request)) handle();
        else halfOpen.admit(request, response, handle);
      },
    },
    isReady: () => !open.isClosing && deps.isReady(),
    onFailure: (error, route) => deps.logger.error({ route, err: error }, 'a probe failed'),
  });
  const strangers = createStrangerQueue({
    bounds: limits,
    isKnown: (request) => {
      const token = presentedToken(request);
      return isProbe(request) || (token !== undefined && deps.knowsToken(token));
    },
    onRefused: warnOfRefusals(
      deps.logger,
      'calls without a known token are refused: too many wait',
    ),
  });
  const onRequest: RequestHandler = (request, response) => {
    ignoreErrors(request, response);
    if (deps.tls !== undefined && demandHttp1(request, response)) return;
    requestNote(request).remote = addresses.of(request);
    deps.authorize?.(request);
    strangers.admit(request, response, () => answer(request, response));
  };
  const answer: RequestHandler = (request, response) => {
    const requestId = identifyRequest(request, response);
    logRequest(log, request, response, requestId);
    traceRequest(tracing, request, response);
    stalled?.track(response);
    if ('stream' in response) endWithTrailers(response.stream);
    else {
      open.trackResponse(response);
      if (refuseMalformed(request as IncomingMessage, response)) return;
    }
    routes(request, response);
  };

  const server = createHttp1Server(limits, deps.tls, onRequest);
  const open = createOpenConnections(server, limits.idleSessionTimeoutMs);
  answerRefusedRequests(server, limits, open.hasAnswered);
  const http2 = createHttp2Server(limits, onRequest);
  http2.on('session', open.trackSession);

  const mux = splitProtocols(server, deps.tls !== undefined, limits.headersTimeoutMs, (socket) => {
    // The listening server allows half-open connections, which HTTP/2 does not need.
    socket.allowHalfOpen = false;
    http2.emit('connection', socket);
  });
  const { isTrusted } = addresses;
  const bounds = createConnectionLimit(
    { ...limits, isTrusted },
    warnOfRefusals(deps.logger, 'connections are refused: too many are open'),
  );
  const guard = { isTls: deps.tls !== undefined, timeoutMs: limits.headersTimeoutMs };
  guardConnections(server, addresses, guard, (socket) => {
    if (!bounds.admit(socket)) return false;
    open.trackSocket(socket);
    return true;
  });

  return {
    listen(host, port) {
      return new Promise((resolve, reject) => {
        server.once('error', reject);
        stalled = createStalledReplies(limits.stallTimeoutMs);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      });
    },
    useCertificate({ cert, key }) {
      if (server instanceof TlsServer) server.setSecureContext({ cert, key });
    },
    async close(drainMs) {
      if (!server.listening) return;
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      deps.rpc.drain();
      deps.rest.drain();
      mux.destroyUndecided();
      open.beginClosing();
      const timer = setTimeout(() => open.destroy(), drainMs);
      await closed;
      clearTimeout(timer);
      stalled?.stop();
    },
  };
}

/**
 * Passes HTTP/2 connections of the listening server to `toHttp2`. HTTP/1 connections go back to the
 * server, so that its time limits and close() apply to them.
 */
function splitProtocols(
  server: Server,
  isTls: boolean,
  timeoutMs: number,
  toHttp2: (socket: Socket) => void,
) {
  const accepted = isTls ? 'secureConnection' : 'connection';
  const [takeHttp1] = server.listeners(accepted) as ((socket: Socket) => void)[];
  if (takeHttp1 === undefined) throw new Error('the HTTP/1 server takes no connections');
  const mux = createProtocolMux({
    http1: (socket) => takeHttp1.call(server, socket),
    http2: toHttp2,
    timeoutMs,
  });
  server.off(accepted, takeHttp1);
  server.on(accepted, (socket: Socket & { alpnProtocol?: string | false }) => {
    socket.on('error', () => socket.destroy());
    if (socket.destroyed) return;
    if (socket.alpnProtocol === 'h2') toHttp2(socket);
    else mux.accept(socket);
  });
  return mux;
}

/**
 * Passes the connections that `admit` takes to those who listen for them now, after the header of
 * the PROXY protocol where a proxy sends one. Under TLS they exist before the handshake.
 */
function guardConnections(
  server: Server,
  addresses: ClientAddresses,
  { isTls, timeoutMs }: { readonly isTls: boolean; readonly timeoutMs: number },
  admit: (socket: Socket) => boolean,
): void {
  const takers = server.listeners('connection') as ((socket: Socket) => void)[];
  const take = (socket: Socket): void => {
    for (const taker of takers) taker.call(server, socket);
  };
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    if (!admit(socket)) return;
    if (!addresses.isTrusted(socket.remoteAddress ?? '')) return take(socket);
    socket.on('error', () => socket.destroy());
    readProxyHeader(socket, timeoutMs, (client) => {
      if (client !== undefined) addresses.note(socket, client);
      take(socket);
      // TLS reads from below the socket.
      if (!isTls) socket.resume();
    });
  });
}

function warnOfRefusals(logger: Logger, text: string): (remote: string) => void {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (remote) => {
    if (performance.now() - warnedAt < REFUSALS_LOG_MS) return;
    warnedAt = performance.now();
    logger.warn({ remote }, text);
  };
}

/**
 * Whether a supervisor asks for the state of the process, which costs as little as a refusal. Over
 * HTTP/2 such requests wait like others, because one connection can send many of them at once.
 */
function isProbe({ httpVersionMajor, url }: AnyRequest): boolean {
  return httpVersionMajor < 2 && (url === '/healthz' || url === '/readyz');
}

/** A disconnected client is no fault; without a listener Node would end the process. */
function ignoreErrors(request: AnyRequest, response: AnyResponse): void {
  request.on('error', () => undefined);
  response.on('error', () => undefined);
}
