import type { AnyRequest } from './node-http.ts';

/** Why a body could not be read. */
export type BodyFaultKind = 'too_large' | 'incomplete' | 'too_slow';

/** A body that could not be read. */
export class BodyFault extends Error {
  override readonly name = 'BodyFault';
  readonly kind: BodyFaultKind;

  constructor(kind: BodyFaultKind) {
    super(kind);
    this.kind = kind;
  }
}

/**
 * The time that any body may take; a long body may take longer, according to the slowest accepted
 * rate.
 */
const BASE_MS = 15_000;
const SLOWEST_BYTES_PER_MS = 128;

/** The time that a client may take for a body of this length, in milliseconds. */
export function bodyTimeMs(bytes: number): number {
  return BASE_MS + bytes / SLOWEST_BYTES_PER_MS;
}

const EMPTY = Buffer.alloc(0);
const FIRST_BYTES = 16 * 1024;

/** Whether a request may have a body. */
export function hasBody(request: AnyRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers;
  if (length === '0') return false;
  if (length !== undefined) return true;
  return 'stream' in request ? !request.stream.endAfterHeaders : transfer !== undefined;
}

/** The Content-Length of a request; undefined when it has no such header. */
export function declaredLength(request: AnyRequest): number | undefined {
  const length = request.headers['content-length'];
  return length === undefined || !/^\d{1,15}$/.test(length) ? undefined : Number(length);
}

/**
 * Reads a whole body. Rejects with a {@link BodyFault} when it is longer than `maxBytes`, ends
 * early, or does not arrive in time (default by {@link bodyTimeMs}). The unread rest is discarded.
 */
export function receiveBody(
  request: AnyRequest,
  maxBytes: number,
  timeMs: number = bodyTimeMs(maxBytes),
): Promise<Buffer> {
  if (!hasBody(request)) return Promise.resolve(EMPTY);
  const declared = declaredLength(request);
  if ((declared ?? 0) > maxBytes) {
    request.resume();
    return Promise.reject(new BodyFault('too_large'));
  }
  // Closed before somebody listened.
  if (request.destroyed) return Promise.reject(new BodyFault('incomplete'));
  return new Promise((resolve, reject) => {
    // Tiny chunks are copied together as they arrive: kept as single buffers they would take
    // hundreds of times their length.
    let body: Buffer = EMPTY;
    let length = 0;
    const add = (chunk: Buffer): void => {
      const needed = length + chunk.byteLength;
      if (needed > maxBytes) {
        fail('too_large');
        return;
      }
      if (length === 0) body = chunk;
      else {
        if (needed > body.byteLength || length === body.byteLength) {
          const size = declared ?? Math.min(maxBytes, Math.max(needed * 2, FIRST_BYTES));
          const larger = Buffer.allocUnsafe(Math.max(size, needed));
          body.copy(larger, 0, 0, length);
          body = larger;
        }
        chunk.copy(body, length);
      }
      length = needed;
    };
    const end = (): void => {
      stop();
      resolve(length === body.byteLength ? body : body.subarray(0, length));
    };
    const broken = (): void => fail('incomplete');
    const timer = setTimeout(() => fail('too_slow'), timeMs);
    function stop(): void {
      clearTimeout(timer);
      request.off('data', add);
      request.off('end', end);
      request.off('error', broken);
      request.off('close', broken);
    }
    function fail(kind: BodyFaultKind): void {
      stop();
      body = EMPTY;
      request.resume();
      reject(new BodyFault(kind));
    }
    request.on('data', add);
    request.once('end', end);
    request.once('error', broken);
    request.once('close', broken);
  });
}
