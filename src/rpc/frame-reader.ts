import { MessageFault } from '../api/scan-message.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { BodyFault } from '../http/receive-body.ts';
import { decodeText, isGrpcWebText } from './grpc-web-text.ts';

/** Reads a request's body in pieces of given lengths. */
export interface FrameReader {
  /**
   * Returns the next `length` bytes; undefined when the body has ended before the first of them.
   * Rejects with a BodyFault when the body ends within them, or when they have not arrived within
   * `timeMs`.
   */
  read(length: number, timeMs: number | undefined): Promise<Buffer | undefined>;
}

const NOTHING = Buffer.alloc(0);

/**
 * Makes the reader. Only one read at a time; bytes that are not requested stay in the connection.
 */
export function createFrameReader(request: AnyRequest): FrameReader {
  const sent = request.iterator({ destroyOnReturn: false }) as AsyncIterableIterator<Buffer>;
  const isText = isGrpcWebText(request.headers['content-type']);
  const chunks: AsyncIterator<Buffer> = isText ? decodeText(sent) : sent;
  let rest: Buffer = NOTHING;

  async function nextChunk(deadline: number | undefined): Promise<Buffer | undefined> {
    try {
      const next = await nextBefore(chunks, deadline);
      return next.done === true ? undefined : next.value;
    } catch (error) {
      if (error instanceof BodyFault || error instanceof MessageFault) throw error;
      throw new BodyFault('incomplete');
    }
  }

  return {
    async read(length, timeMs) {
      const deadline = timeMs === undefined ? undefined : performance.now() + timeMs;
      if (length === 0) return NOTHING;
      while (rest.byteLength === 0) {
        const chunk = await nextChunk(deadline);
        if (chunk === undefined) return undefined;
        rest = chunk;
      }
      if (rest.byteLength >= length) return take(length);
      const whole = Buffer.allocUnsafe(length);
      for (let filled = 0; ; ) {
        const part = take(Math.min(rest.byteLength, length - filled));
        part.copy(whole, filled);
        filled += part.byteLength;
        if (filled === length) return whole;
        const chunk = await nextChunk(deadline);
        if (chunk === undefined) throw new BodyFault('incomplete');
        rest = chunk;
      }
    },
  };

  function take(length: number): Buffer {
    const part = rest.subarray(0, length);
    rest = rest.subarray(length);
    return part;
  }
}

function nextBefore(
  chunks: AsyncIterator<Buffer>,
  deadline: number | undefined,
): Promise<IteratorResult<Buffer>> {
  const next = chunks.next();
  if (deadline === undefined) return next;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new BodyFault('too_slow')),
      Math.max(0, deadline - performance.now()),
    );
    next.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
