import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';

type Connect = typeof http2.connect;

/**
 * The event of a socket when a stream of its HTTP/2 connection is aborted and nothing has arrived since that
 * stream began. The connection may have died without being closed.
 */
export const SILENT = 'silent';

/** Mends three things of the streams that undici makes, in all HTTP/2 connections of this thread. */
export function mendHttp2Streams(): void {
  const { connect } = http2;
  const connecting = (...given: Parameters<Connect>): ReturnType<Connect> => {
    const session = connect(...given);
    const request = session.request.bind(session);
    const tellSilence = createSilenceWatch(session);
    session.request = (...headersAndOptions) => {
      const stream = request(...headersAndOptions);
      endUnsent(stream, () => session.destroy());
      failCut(stream);
      tellSilence(stream);
      return stream;
    };
    return session;
  };
  // undici takes the function from this object for each connection.
  Object.assign(http2, { connect: connecting });
}

/**
 * Ends the connection of a stream that is aborted before its body was sent. undici closes such a stream without
 * a code and destroys it at once. Node then writes empty frames of the body to memory without an end, as soon as
 * the server's window has room, and the thread does nothing else any more. With a code it still does so for
 * bodies that are sent in pieces.
 */
function endUnsent(stream: ClientHttp2Stream, endConnection: () => void): void {
  const close = stream.close.bind(stream);
  stream.close = (code, callback) => {
    const isUnsent = stream.writableLength > 0 || !stream.writableEnded;
    if (code === undefined && isUnsent && !stream.destroyed) endConnection();
    else close(code, callback);
  };
}

/**
 * Withholds the end of a stream that the server resets before it, which Node may take for complete. undici then
 * fails the request when the stream closes. One that is complete ends before it is closed.
 */
function failCut(stream: ClientHttp2Stream): void {
  const push = stream.push.bind(stream);
  let hasEnded = false;
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null && stream.closed && !hasEnded) {
      setImmediate(() => stream.destroy());
      return false;
    }
    hasEnded ||= chunk === null;
    return push(chunk, encoding);
  };
}

/**
 * Emits {@link SILENT} on the socket of the session. undici asks the server by a PING after time limits of its
 * own streams alone; those of the requests here are not.
 */
function createSilenceWatch(session: ClientHttp2Session): (stream: ClientHttp2Stream) => void {
  let socket: Socket | undefined;
  session.once('connect', (_session, connected) => {
    socket = connected;
  });
  return (stream) => {
    const { bytesRead } = session.socket;
    const close = stream.close.bind(stream);
    stream.close = (code, callback) => {
      if (socket?.bytesRead === bytesRead) socket.emit(SILENT);
      close(code, callback);
    };
  };
}
