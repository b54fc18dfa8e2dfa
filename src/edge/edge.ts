import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  constants,
  createServer as createHttp2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Logger } from '../domain/logger.ts';
import type { AnyRequest, AnyResponse } from '../http/node-http.ts';
import { createConnectionLimit } from './connection-limit.ts';
import { createProtocolMux } from './protocol-mux.ts';
import { answerRefusedRequests, refuseWithoutHost } from './refused-requests.ts';
import { createRoutes, type RequestHandler, type RoutesDeps } from './routes.ts';
import { createStalledReplies, type StalledReplies } from './stalled-replies.ts';

/** At most one log line about refused connections in this time. */
const REFUSALS_LOG_MS = 60_000;

/** PEM texts of the certificate chain and its key. */
export interface EdgeTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** The limits of a client's time and memory. Times in milliseconds. */
export interface EdgeLimits {
  /** For the first bytes and the headers of a request. Default 15,000. */
  readonly headersTimeoutMs?: number;
  /** For a whole HTTP/1 request, body included. Default 120,000. */
  readonly requestTimeoutMs?: number;
  /**
   * How long an unused HTTP/1 connection is kept. Default 65,000, longer than common load balancers
   * keep theirs.
   */
  readonly keepAliveTimeoutMs?: number;
  /** How long an HTTP/2 connection without streams is kept. Default 300,000. */
  readonly idleSessionTimeoutMs?: number;
  /** Default 64 KiB: three times the longest URL, percent-encoded. */
  readonly maxHeaderBytes?: number;
  /** Streams at once on one HTTP/2 connection. Default 1,000. */
  readonly maxStreams?: number;
  /** How long a client may read nothing of a reply that has been written. Default 30,000. */
  readonly stallTimeoutMs?: number;
  /** Connections at once. Default 10,000. */
  readonly maxConnections?: number;
  /** Connections at once from one address other than this machine. Default 1,000. */
  readonly maxPerAddress?: number;
}

/** The collaborators of the edge. */
export interface EdgeDeps extends Omit<RoutesDeps, 'rpc' | 'onFailure'> {
  readonly rpc: RoutesDeps['rpc'] & { drain(): void };
  /** If present, the port speaks TLS, and ALPN selects the protocol. */
  readonly tls?: EdgeTls;
  readonly limits?: EdgeLimits;
  readonly logger: Logger;
}

/** The one port of the service. */
export interface Edge {
  /**
   * Starts to listen. Resolves with the port, which is a free one for 0. Rejects when the address
   * is not available.
   */
  listen(host: string, port: number): Promise<number>;
  /**
   * Closes: no new connections, idle ones closed, GOAWAY to HTTP/2 clients, streams ended. Requests
   * in progress get `drainMs` to finish, then the remaining connections are destroyed. Resolves
   * when every connection is closed.
   */
  close(drainMs: number): Promise<void>;
}

/** Makes the edge; it opens nothing. */
export function createEdge(deps: EdgeDeps): Edge {
  const limits = deps.limits ?? {};
  const headersTimeoutMs = limits.headersTimeoutMs ?? 15_000;
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const responses = new Set<ServerResponse>();
  let closing = false;
  let stalled: StalledReplies | undefined;
  let saidAt = Number.NEGATIVE_INFINITY;
  const connections = createConnectionLimit(
    {
      maxConnections: limits.maxConnections ?? 10_000,
      maxPerAddress: limits.maxPerAddress ?? 1_000,
    },
    (remote) => {
      if (performance.now() - saidAt < REFUSALS_LOG_MS) return;
      saidAt = performance.now();
      deps.logger.warn({ remote }, 'connections are refused: too many are open');
    },
  );

  const routes = createRoutes({
    ...deps,
    isReady: () => !closing && deps.isReady(),
    onFailure: (error, route) => deps.logger.error({ route, err: error }, 'a probe failed'),
  });
  const onRequest: RequestHandler = (request, response) => {
    ignoreErrors(request, response);
    stalled?.track(response);
    if ('stream' in response) endWithTrailers(response.stream);
    else {
      trackHttp1(response);
      if (refuseWithoutHost(request as IncomingMessage, response)) return;
    }
    routes(request, response);
  };

  const maxHeaderBytes = limits.maxHeaderBytes ?? 65_536;
  const http1Options = {
    headersTimeout: headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs ?? 120_000,
    keepAliveTimeout: limits.keepAliveTimeoutMs ?? 65_000,
    connectionsCheckingInterval: Math.min(headersTimeoutMs, 5_000),
    maxHeaderSize: maxHeaderBytes,
    // `refuseWithoutHost` refuses such requests instead, with a body.
    requireHostHeader: false,
  };
  const server: Server =
    deps.tls === undefined
      ? createServer(http1Options, onRequest)
      : createTlsServer(
          {
            ...http1Options,
            ...deps.tls,
            // gRPC clients offer h2 alone. REST clients that offer both get HTTP/1.1, because some
            // of them compare the spelling of header names, which HTTP/2 writes in lower case.
            ALPNProtocols: ['http/1.1', 'h2'],
            handshakeTimeout: headersTimeoutMs,
          },
          onRequest,
        );
  answerRefusedRequests(server, { maxHeaderBytes }, (socket) =>
    [...responses].some((response) => response.socket === socket && response.headersSent),
  );
  const http2 = createHttp2Server(
    {
      settings: {
        maxConcurrentStreams: limits.maxStreams ?? 1_000,
        maxHeaderListSize: maxHeaderBytes,
        // With the default of 64 KiB, large batches wait for a round trip per window.
        initialWindowSize: 1024 * 1024,
      },
    },
    onRequest,
  );
  http2.on('session', trackSession);

  // HTTP/1 connections are passed to the server that listens, so that its time limits and close()
  // apply to them.
  const accepted = deps.tls === undefined ? 'connection' : 'secureConnection';
  const [takeHttp1] = server.listeners(accepted) as ((socket: Socket) => void)[];
  const toHttp2 = (socket: Socket): void => {
    // The listening server allows half-open connections, which HTTP/2 does not need.
    socket.allowHalfOpen = false;
    http2.emit('connection', socket);
  };
  const mux = createProtocolMux({
    http1: (socket) => takeHttp1?.call(server, socket),
    http2: toHttp2,
    timeoutMs: headersTimeoutMs,
  });
  server.removeAllListeners(accepted);
  // Under TLS this is the raw connection, which exists before the handshake.
  server.on('connection', (socket) => {
    if (!connections.admit(socket)) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on(accepted, (socket: Socket & { alpnProtocol?: string | false }) => {
    socket.on('error', () => socket.destroy());
    if (socket.destroyed) return;
    if (socket.alpnProtocol === 'h2') toHttp2(socket);
    else mux.accept(socket);
  });

  function trackSession(session: ServerHttp2Session): void {
    let streams = 0;
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('stream', (stream) => {
      streams += 1;
      stream.once('close', () => {
        streams -= 1;
      });
    });
    session.setTimeout(limits.idleSessionTimeoutMs ?? 300_000, () => {
      if (streams === 0) session.close();
    });
    if (closing) session.close();
  }

  function trackHttp1(response: ServerResponse): void {
    if (closing) response.shouldKeepAlive = false;
    responses.add(response);
    response.once('close', () => {
      responses.delete(response);
      // A connection whose headers were sent before the close began was promised keep-alive.
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
  }

  return {
    listen(host, port) {
      return new Promise((resolve, reject) => {
        server.once('error', reject);
        stalled = createStalledReplies(limits.stallTimeoutMs ?? 30_000);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      });
    },
    async close(drainMs) {
      if (!server.listening) return;
      closing = true;
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      deps.rpc.drain();
      mux.destroyUndecided();
      for (const session of sessions) session.close();
      for (const response of responses) response.shouldKeepAlive = false;
      const timer = setTimeout(() => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      }, drainMs);
      await closed;
      clearTimeout(timer);
      stalled?.stop();
    },
  };
}

/** A disconnected client is no fault; without a listener Node would end the process. */
function ignoreErrors(request: AnyRequest, response: AnyResponse): void {
  request.on('error', () => undefined);
  response.on('error', () => undefined);
}

/**
 * Closes a stream after its trailers even if the client has not ended its side; Node would wait for
 * that. The code says that the answer is complete (RFC 9113, 8.1).
 */
function endWithTrailers(stream: ServerHttp2Stream): void {
  stream.once('wantTrailers', () => {
    setImmediate(() => {
      if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
    });
  });
}
