import { gunzip } from 'node:zlib';
import type { AnyRequest } from '../rpc/node-http.ts';
import { Refusal } from './refusal.ts';

const EMPTY = new Uint8Array(0);

/** How many times the limit is read and thrown away after a 413, so that the client gets to see the answer. */
const DRAIN_FACTOR = 8;

/**
 * The body of a request, gzip undone. Throws a Refusal: 413 when it is longer than `maxBytes`, sent or unpacked, 415 for another
 * Content-Encoding, 400 when it is broken off or not gzip.
 */
export async function readRequestBody(request: AnyRequest, maxBytes: number): Promise<Uint8Array> {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity' && encoding !== 'gzip') {
    throw new Refusal(415, 'unsupported_encoding', 'Content-Encoding must be gzip or identity.', {
      headers: { 'accept-encoding': 'gzip' },
    });
  }
  const body = await receive(request, maxBytes);
  return encoding === 'gzip' && body.byteLength > 0 ? unpack(body, maxBytes) : body;
}

function receive(request: AnyRequest, maxBytes: number): Promise<Uint8Array> {
  const { 'content-length': length, 'transfer-encoding': transfer } = request.headers;
  if (length === '0' || (request.httpVersionMajor === 1 && !length && !transfer)) {
    return Promise.resolve(EMPTY);
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let received = 0;
    let refused = false;
    const refuse = () => {
      refused = true;
      chunks.length = 0;
      reject(tooLarge(maxBytes));
    };
    if (Number(length) > maxBytes) refuse();
    request.on('data', (chunk: Buffer) => {
      received += chunk.byteLength;
      if (refused) {
        if (received > maxBytes * DRAIN_FACTOR) request.destroy();
      } else if (received > maxBytes) refuse();
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    const broken = () => reject(new Refusal(400, 'incomplete_body', 'The body was cut short.'));
    request.once('error', broken);
    request.once('close', broken);
  });
}

function unpack(body: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    gunzip(body, { maxOutputLength: maxBytes }, (error, unpacked) => {
      if (error === null) resolve(unpacked);
      else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') reject(tooLarge(maxBytes));
      else reject(new Refusal(400, 'invalid_gzip', 'The body is not gzip.'));
    });
  });
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(413, 'body_too_large', `The body is longer than ${maxBytes} bytes.`, {
    facts: { limit: maxBytes },
  });
}
