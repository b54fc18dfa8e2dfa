import { constants } from 'node:http2';
import type { UniversalServerResponse } from '@connectrpc/connect/protocol';
import type { AnyResponse } from '../http/node-http.ts';
import { plainMessage } from './grpc-message.ts';

type Chunks = AsyncIterator<Uint8Array>;

/**
 * Sends a gRPC reply whose call failed before its first message, as one block of headers: what gRPC
 * calls Trailers-Only. Retry policies of gRPC clients repeat a call after no other reply, because
 * headers of their own say that a call was begun. Returns any other reply, of which nothing is sent.
 */
export async function sendTrailersOnly(
  reply: UniversalServerResponse,
  response: AnyResponse,
): Promise<UniversalServerResponse | undefined> {
  const { header, trailer } = reply;
  if (reply.body === undefined || header === undefined || trailer === undefined) return reply;
  // HTTP/1.1 has no such form.
  if (!('stream' in response)) return reply;
  const chunks: Chunks = reply.body[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done !== true) return { ...reply, body: continued(first.value, chunks) };
  if (trailer.get('grpc-status') === '0') return { ...reply, body: nothing() };
  const message = trailer.get('grpc-message');
  if (message !== null) trailer.set('grpc-message', plainMessage(message));
  response.statusCode = reply.status;
  for (const [name, value] of [...header, ...trailer]) response.setHeader(name, value);
  const { stream } = response;
  response.end();
  // As after trailers: the answer is complete, whether or not the client has ended its side.
  setImmediate(() => {
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
  return undefined;
}

async function* continued(
  first: Uint8Array,
  chunks: Chunks,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield first;
    yield* { [Symbol.asyncIterator]: () => chunks };
  } finally {
    await chunks.return?.();
  }
}

async function* nothing(): AsyncGenerator<Uint8Array, void, undefined> {}
