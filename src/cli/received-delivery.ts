import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

const unpack = promisify(gunzip);

/** Longest body as sent, and unpacked. */
const MAX_BYTES = 64 * 1024 * 1024;
/** An older signature may have been recorded and sent again by somebody else. */
const MAX_AGE_SECONDS = 300;

/** A POST of the service, as the receiver got it. */
export interface ReceivedDelivery {
  /** `unverified` when there is no secret to verify it by. */
  readonly signature: 'valid' | 'invalid' | 'unverified';
  /** Whether it is a probe of the monitoring. */
  readonly isProbe: boolean;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Unpacked. */
  readonly body: Buffer;
}

/** Reads a POST and verifies it. Throws when it is too long or cut short, or no gzip. */
export async function readDelivery(
  request: IncomingMessage,
  secret: string | undefined,
): Promise<ReceivedDelivery> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error(`it is longer than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  const sent = Buffer.concat(chunks);
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  const isPacked = headers['content-encoding'] === 'gzip';
  const body = isPacked ? await unpack(sent, { maxOutputLength: MAX_BYTES }) : sent;
  return {
    signature:
      secret === undefined ? 'unverified' : isGenuine(headers, sent, secret) ? 'valid' : 'invalid',
    isProbe: headers.rid === undefined && headers['webhook-results'] === undefined,
    headers,
    body,
  };
}

/** The results of a POST: of several, each with its JSON envelope as body and its own fields as headers. */
export function resultsOf(delivery: ReceivedDelivery): readonly ReceivedDelivery[] {
  const { headers, body } = delivery;
  if (headers['webhook-results'] === undefined) return [delivery];
  const lines = body.toString().trimEnd().split('\n');
  return lines.map((line) => ({ ...delivery, headers: fieldsOf(line), body: Buffer.from(line) }));
}

function fieldsOf(line: string): Record<string, string> {
  const fields = Object.entries(JSON.parse(line) as Record<string, unknown>);
  const short = fields.filter(([name, value]) => name !== 'body' && typeof value !== 'object');
  return Object.fromEntries(short.map(([name, value]) => [name, String(value)]));
}

/** As Standard Webhooks says, over the bytes as sent. */
function isGenuine(
  headers: Readonly<Record<string, string>>,
  sent: Buffer,
  secret: string,
): boolean {
  const id = headers['webhook-id'];
  const sentAt = headers['webhook-timestamp'];
  if (!(Math.abs(Date.now() / 1_000 - Number(sentAt)) < MAX_AGE_SECONDS)) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${sentAt}.`).update(sent).digest();
  return (headers['webhook-signature'] ?? '').split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
