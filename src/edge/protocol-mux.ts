import type { Socket } from 'node:net';

/** The first bytes of an HTTP/2 client (RFC 9113, 3.4); no HTTP/1 request starts with them. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
/** The request line of the preface is enough to decide. */
const DECISIVE_BYTES = 14;

/** The collaborators of the mux. */
export interface ProtocolMuxDeps {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
  /** How long a client may take to send the first bytes, in milliseconds. */
  readonly timeoutMs: number;
}

/** Distinguishes HTTP/2 with prior knowledge from HTTP/1 by the first bytes of a connection. */
export interface ProtocolMux {
  /**
   * Takes a connection and passes it on, with all its bytes unread, once enough of them have
   * arrived.
   */
  accept(socket: Socket): void;
  /** Destroys the connections whose protocol is not known yet. */
  destroyUndecided(): void;
}

/** Makes a {@link ProtocolMux}. */
export function createProtocolMux(deps: ProtocolMuxDeps): ProtocolMux {
  const undecided = new Set<Socket>();

  function accept(socket: Socket): void {
    let seen: Buffer = Buffer.alloc(0);
    const timer = setTimeout(() => socket.destroy(), deps.timeoutMs).unref();
    undecided.add(socket);

    function leave(): void {
      clearTimeout(timer);
      undecided.delete(socket);
      socket.off('data', inspect);
      socket.off('end', end);
      socket.off('close', leave);
    }
    function end(): void {
      socket.destroy();
    }
    function inspect(chunk: Buffer): void {
      seen = seen.byteLength === 0 ? chunk : Buffer.concat([seen, chunk]);
      const length = Math.min(seen.byteLength, DECISIVE_BYTES);
      const isPreface = seen.compare(PREFACE, 0, length, 0, length) === 0;
      if (isPreface && length < DECISIVE_BYTES) return;
      leave();
      // While it is paused, the bytes stay in the socket until its new owner listens.
      socket.pause();
      socket.unshift(seen);
      if (isPreface) deps.http2(socket);
      else {
        deps.http1(socket);
        socket.resume();
      }
    }
    socket.on('data', inspect);
    socket.on('end', end);
    socket.on('close', leave);
  }

  return {
    accept,
    destroyUndecided() {
      for (const socket of undecided) socket.destroy();
    },
  };
}
