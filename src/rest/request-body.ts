import { gunzip } from 'node:zlib';
import type { AnyRequest } from '../http/node-http.ts';
import { BodyFault, declaredLength, hasBody, receiveBody } from '../http/receive-body.ts';
import type { Room } from '../http/room.ts';
import { GatewayError } from './gateway-error.ts';

const EMPTY = new Uint8Array(0);

/**
 * Reads the body of a request and decompresses gzip, in memory claimed from `room`. Resolves when it is
 * the call's turn to parse it. Throws a GatewayError: 413 when it is longer than `maxBytes`, compressed or not, and 415 for another
 * Content-Encoding. It is 408 when the body does not arrive in time, and 400 when it ends early or
 * is not gzip.
 */
export async function readRequestBody(
  request: AnyRequest,
  maxBytes: number,
  room: Room,
): Promise<Uint8Array> {
  const coding = (request.headers['content-encoding'] ?? 'identity').toLowerCase();
  const isPacked = coding === 'gzip' || coding === 'x-gzip';
  if (!isPacked && coding !== 'identity') {
    throw new GatewayError(
      415,
      'unsupported_encoding',
      'Content-Encoding must be gzip or identity.',
      {
        headers: { 'accept-encoding': 'gzip' },
      },
    );
  }
  if (!hasBody(request)) return EMPTY;
  const length = declaredLength(request) ?? maxBytes;
  if (length > maxBytes) throw tooLarge(maxBytes);
  // Twice the length: the bytes, and the objects they are parsed to.
  const grant = await room.take(isPacked ? length + maxBytes * 2 : length * 2);
  const body = await receive(request, maxBytes);
  const unpacked = isPacked && body.byteLength > 0 ? await unpack(body, maxBytes) : body;
  grant.shrink(unpacked.byteLength * 2);
  await room.readTurn(unpacked.byteLength);
  return unpacked;
}

async function receive(request: AnyRequest, maxBytes: number): Promise<Buffer> {
  try {
    return await receiveBody(request, maxBytes);
  } catch (error) {
    if (error instanceof BodyFault) throw toRefusal(error, request, maxBytes);
    throw error;
  }
}

function toRefusal(fault: BodyFault, request: AnyRequest, maxBytes: number): GatewayError {
  switch (fault.kind) {
    case 'too_large':
      return tooLarge(maxBytes);
    case 'incomplete':
      return new GatewayError(400, 'incomplete_body', 'The body was cut short.');
    case 'too_slow': {
      // The unread rest would block the connection.
      const headers = request.httpVersionMajor === 1 ? { connection: 'close' } : {};
      return new GatewayError(408, 'body_too_slow', 'The body did not come in time.', { headers });
    }
  }
}

function unpack(body: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    gunzip(body, { maxOutputLength: maxBytes }, (error, unpacked) => {
      if (error === null) resolve(unpacked);
      else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') reject(tooLarge(maxBytes));
      else reject(new GatewayError(400, 'invalid_gzip', 'The body is not gzip.'));
    });
  });
}

function tooLarge(maxBytes: number): GatewayError {
  return new GatewayError(413, 'body_too_large', `The body is longer than ${maxBytes} bytes.`, {
    facts: { limit: maxBytes },
  });
}
