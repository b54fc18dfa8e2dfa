import { malformed } from '../api/scan-message.ts';

const TYPE = /^application\/grpc-web-text/i;

/** Whether a request is gRPC-Web in base64, the default of Google's client for browsers. */
export function isGrpcWebText(contentType: string | undefined): boolean {
  return TYPE.test(contentType ?? '');
}

/** The media type of the same bytes without base64. */
export function binaryType(contentType: string): string {
  return contentType.replace(TYPE, 'application/grpc-web');
}

/** The media type of the same bytes in base64. */
export function textType(contentType: string): string {
  return contentType.replace(/^application\/grpc-web(?!-text)/i, 'application/grpc-web-text');
}

/**
 * Decodes base64 as it arrives. Padding may stand wherever the client has ended a piece. Throws a
 * MessageFault for anything else.
 */
export async function* decodeText(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void, undefined> {
  let rest = '';
  for await (const chunk of chunks) {
    const text = rest + chunk.toString('latin1').replace(/[\r\n]/g, '');
    const whole = text.length - (text.length % 4);
    rest = text.slice(whole);
    if (whole > 0) yield decodeGroups(text.slice(0, whole));
  }
  if (rest !== '') throw malformed('its base64 is cut short');
}

/** Encodes each piece by itself, so that a client can read it before the next one comes. */
export async function* encodeText(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of pieces) {
    yield Buffer.from(Buffer.from(piece).toString('base64'), 'latin1');
  }
}

function decodeGroups(text: string): Buffer {
  if (!/^(?:[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*$/.test(text)) {
    throw malformed('it is not base64');
  }
  const runs = text.match(/[^=]+=*/g) ?? [];
  return Buffer.concat(runs.map((run) => Buffer.from(run, 'base64')));
}
