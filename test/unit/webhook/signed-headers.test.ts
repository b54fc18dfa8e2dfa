import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { signatureHeaders, startSigning } from '../../../src/domain/webhook-signature.ts';
import { signedHeaders } from '../../../src/webhook/signed-headers.ts';

const secrets = [{ secret: `whsec_${randomBytes(32).toString('base64')}` }];
const message = { id: 'rid', sentAt: new Date() };

function expected(...payloads: readonly Uint8Array[]) {
  const signatures = payloads.flatMap((payload) => {
    const signing = startSigning(secrets, message);
    signing.update(payload);
    return signing.signatures();
  });
  return signatureHeaders(message, signatures);
}

const sign = (bytes: Uint8Array) => signedHeaders(secrets, message, { bytes, isGzip: true });

test('the bytes as sent and the decompressed bytes are signed, whatever came before', async () => {
  const random = randomBytes(100_000).toString('base64');
  for (const text of ['<p>A page.</p>', '', 'x'.repeat(1_000_000), random, 'again']) {
    const body = gzipSync(text);
    expect(await sign(body)).toEqual(expected(body, Buffer.from(text)));
  }
});

test('a body that does not decompress is an error, and harms none after it', async () => {
  const good = gzipSync('a page');
  for (const bad of [Buffer.from('no gzip at all'), good.subarray(0, good.length - 10)]) {
    await expect(sign(bad)).rejects.toThrow(/header|unexpected end/);
    expect(await sign(good)).toEqual(expected(good, Buffer.from('a page')));
  }
});
