import type { Socket } from 'node:net';
import { httpError } from './http-failures.ts';

/** A body in chunks of a byte each takes six times its length. */
const PER_BODY_BYTE = 8;
/** For heads, 1xx answers, chunk extensions and trailers. */
const SLACK_BYTES = 1024 * 1024;

/**
 * Ends an HTTP/1.1 connection (`body_too_large`) that receives far more since its last request than an
 * answer with a body of `maxBodyBytes()` takes. The parser does not report 1xx answers, chunk extensions
 * and empty lines before a head. A server could send gigabytes of them in the time of a request.
 */
export function limitAnswers(socket: Socket, maxBodyBytes: () => number): void {
  const push = socket.push.bind(socket);
  let sentBytes = socket.bytesWritten;
  let receivedBytes = 0;

  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return push(chunk);
    if (socket.bytesWritten !== sentBytes) {
      sentBytes = socket.bytesWritten;
      receivedBytes = 0;
    }
    receivedBytes += chunk.length;
    if (receivedBytes <= PER_BODY_BYTE * maxBodyBytes() + SLACK_BYTES) return push(chunk);
    socket.destroy(httpError('body_too_large'));
    return false;
  };
}

/** Time between two looks at what an HTTP/2 connection has received. */
const LOOK_MS = 500;

/** The requests of a connection. */
export interface RequestsSeen {
  /** How many were begun so far. */
  readonly begun: number;
  /** How many are under way. */
  readonly inUse: number;
  readonly maxBodyBytes: number;
}

/**
 * The same for an HTTP/2 connection, since the last request of its pool. Frames that carry nothing, such
 * as padded empty data or updates of windows, are not reported either. Their bytes pass no stream.
 */
export function limitFrames(socket: Socket, seen: () => RequestsSeen): void {
  let begun = -1;
  let allowedBytes = 0;
  const timer = setInterval(() => {
    const { begun: now, inUse, maxBodyBytes } = seen();
    if (now !== begun) {
      begun = now;
      allowedBytes =
        socket.bytesRead + PER_BODY_BYTE * maxBodyBytes * Math.max(1, inUse) + SLACK_BYTES;
    } else if (socket.bytesRead > allowedBytes) socket.destroy(httpError('body_too_large'));
  }, LOOK_MS).unref();
  socket.once('close', () => clearInterval(timer));
}
