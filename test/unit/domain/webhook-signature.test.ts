import { createHmac } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import {
  activeSecrets,
  createWebhookSecret,
  rotateSecrets,
  signatureHeaders,
  startSigning,
} from '../../../src/domain/webhook-signature.ts';

const HOUR = 3_600_000;
const NOW = new Date('2026-01-01T00:00:00Z');
const later = (ms: number) => new Date(NOW.getTime() + ms);
const id = '0123456789abcdef01234567';

function signed(
  secrets: readonly string[],
  payload: Uint8Array,
  message = { id, sentAt: new Date() },
) {
  const signing = startSigning(
    secrets.map((secret) => ({ secret })),
    message,
  );
  signing.update(payload);
  return Object.fromEntries(signatureHeaders(message, signing.signatures()));
}

describe('signatures', () => {
  test('the example of the specification', () => {
    // Secret, id, timestamp, payload and signature as published by the Standard Webhooks libraries' tests.
    const headers = signed(
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
      Buffer.from('{"test": 2432232314}'),
      { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: new Date(1_614_265_330_999) },
    );
    expect(headers).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });

  test('verified by the standardwebhooks package, over text', () => {
    const secret = createWebhookSecret();
    const text = JSON.stringify({ body: '<p>日本語 é</p>' });
    const headers = signed([secret], Buffer.from(text));
    expect(new Webhook(secret).verify(text, headers)).toEqual(JSON.parse(text));
    expect(() => new Webhook(secret).verify(`${text} `, headers)).toThrow();
    expect(() => new Webhook(createWebhookSecret()).verify(text, headers)).toThrow();
    const page = '<h1>no JSON</h1>';
    const ofPage = signed([secret], Buffer.from(page));
    const asText = { jsonParse: false };
    expect(new Webhook(secret).verify(page, ofPage, asText)).toBeUndefined();
    expect(() => new Webhook(secret).verify(`${page} `, ofPage, asText)).toThrow();
  });

  test('bytes that are no text, fed in pieces', () => {
    const secret = createWebhookSecret();
    const bytes = gzipSync('{"a":1}');
    const message = { id, sentAt: new Date() };
    const signing = startSigning([{ secret }], message);
    for (let at = 0; at < bytes.length; at += 7) signing.update(bytes.subarray(at, at + 7));
    const timestamp = Math.floor(message.sentAt.getTime() / 1_000);
    const mac = createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
      .update(Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes]))
      .digest('base64');
    expect(signing.signatures()).toEqual([`v1,${mac}`]);
  });

  test('either of two secrets verifies', () => {
    const secrets = [createWebhookSecret(), createWebhookSecret()];
    const headers = signed(secrets, Buffer.from('{}'));
    for (const secret of secrets) expect(new Webhook(secret).verify('{}', headers)).toEqual({});
  });

  test('no secret, no headers', () => {
    expect(signed([], Buffer.from('{}'))).toEqual({});
  });
});

describe('secrets', () => {
  test('are different and of 32 bytes', () => {
    const [one, other] = [createWebhookSecret(), createWebhookSecret()];
    expect(one).not.toBe(other);
    expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });

  test('a replaced one signs for 24 hours more', () => {
    const first = { secret: createWebhookSecret() };
    const rotated = rotateSecrets([first], NOW);
    expect(rotated).toHaveLength(2);
    expect(rotated[0]?.expiresAt).toBeUndefined();
    expect(rotated[1]).toEqual({ ...first, expiresAt: later(24 * HOUR) });
    expect(activeSecrets(rotated, later(24 * HOUR - 1))).toHaveLength(2);
    expect(activeSecrets(rotated, later(24 * HOUR))).toEqual([rotated[0]]);
  });

  test('a second rotation does not prolong the first one’s overlap', () => {
    const once = rotateSecrets([{ secret: createWebhookSecret() }], NOW);
    const twice = rotateSecrets(once, later(HOUR));
    expect(twice.map((secret) => secret.expiresAt)).toEqual([
      undefined,
      later(25 * HOUR),
      later(24 * HOUR),
    ]);
    expect(rotateSecrets(twice, later(24 * HOUR))).toHaveLength(3);
  });

  test('stay few however often they are rotated', () => {
    let secrets = [{ secret: createWebhookSecret() }];
    for (let turn = 0; turn < 20; turn += 1) secrets = rotateSecrets(secrets, NOW);
    expect(secrets).toHaveLength(5);
  });
});
