import type { Server, ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { createTransientSet } from '../domain/transient-map.ts';

/** The open connections, sessions and HTTP/1 replies of the edge, which a close has to end. */
export interface OpenConnections {
  /** Whether {@link beginClosing} was called. */
  readonly isClosing: boolean;
  trackSocket(socket: Socket): void;
  trackSession(session: ServerHttp2Session): void;
  trackResponse(response: ServerResponse): void;
  /** Whether a reply has begun on an HTTP/1 connection. */
  hasAnswered(socket: Socket): boolean;
  /**
   * Sends GOAWAY to HTTP/2 clients, and lets each HTTP/1 connection close after its current reply.
   */
  beginClosing(): void;
  /** Destroys everything that is still open. */
  destroy(): void;
}

/** Tracks the connections of `server`. A session without streams is closed after `idleSessionMs`. */
export function createOpenConnections(server: Server, idleSessionMs: number): OpenConnections {
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const responses = createTransientSet<ServerResponse>();
  let isClosing = false;

  return {
    get isClosing() {
      return isClosing;
    },
    trackSocket(socket) {
      sockets.add(socket);
      socket.once('close', () => sockets.delete(socket));
    },
    trackSession(session) {
      let streams = 0;
      // Node holds a session until its own timer has ended, even when it was closed long before.
      const idle = setTimeout(() => {
        if (streams === 0) session.close();
      }, idleSessionMs).unref();
      sessions.add(session);
      session.once('close', () => {
        sessions.delete(session);
        clearTimeout(idle);
      });
      session.on('stream', (stream) => {
        streams += 1;
        stream.once('close', () => {
          streams -= 1;
          if (streams === 0 && sessions.has(session)) idle.refresh();
        });
      });
      if (isClosing) session.close();
    },
    trackResponse(response) {
      if (isClosing) response.shouldKeepAlive = false;
      responses.add(response);
      response.once('close', () => {
        responses.delete(response);
        // A connection whose headers were sent before the close began was promised keep-alive.
        if (isClosing) setImmediate(() => server.closeIdleConnections());
      });
    },
    hasAnswered: (socket) =>
      [...responses.values()].some(
        (response) => response.socket === socket && response.headersSent,
      ),
    beginClosing() {
      isClosing = true;
      for (const session of sessions) session.close();
      for (const response of responses.values()) response.shouldKeepAlive = false;
    },
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}
