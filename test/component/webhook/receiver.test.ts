import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { startReceiver } from '../../support/receiver.ts';

test('records what was sent and answers as told', async () => {
  await using receiver = await startReceiver({ answer: (_post, nth) => ({ status: 200 + nth }) });
  const body = gzipSync('{"a":1}');
  const send = (rid: string) =>
    fetch(`${receiver.url}?token=1`, {
      method: 'POST',
      body,
      headers: { rid, cb_status: '200', 'CB-Status': '200', 'content-encoding': 'gzip' },
    });

  expect((await send('a')).status).toBe(201);
  expect((await send('b')).status).toBe(202);
  expect((await send('a')).status).toBe(203);

  await receiver.until(2);
  const [first] = receiver.byRid('a');
  expect(first?.rawBody.equals(body)).toBe(true);
  expect(first).toMatchObject({ path: '/hook?token=1', text: '{"a":1}', json: { a: 1 } });
  expect(receiver.duplicates()).toBe(1);
});

test('tells probes from deliveries and refuses other methods', async () => {
  await using receiver = await startReceiver({ answer: { status: 500 } });
  const probe = await fetch(receiver.url, { method: 'POST', body: '{"monitor": true}' });
  expect(probe.status).toBe(200);
  expect((await fetch(receiver.url)).status).toBe(405);
  expect(receiver.probes).toHaveLength(1);
  expect(receiver.deliveries).toHaveLength(0);
  expect(receiver.refused).toEqual(['GET']);
});

test('delays, resets and redirects', async () => {
  await using receiver = await startReceiver();
  const post = () => fetch(receiver.url, { method: 'POST', body: 'x', redirect: 'manual' });

  receiver.answer({ delayMs: 40, status: 204 });
  const started = performance.now();
  expect((await post()).status).toBe(204);
  expect(performance.now() - started).toBeGreaterThan(35);

  receiver.answer({ reset: true });
  await expect(post()).rejects.toThrow();

  receiver.answer({ redirect: 'http://127.0.0.1:1/' });
  expect((await post()).status).toBe(302);
});

test('a hanging answer does not keep the receiver from closing', async () => {
  const receiver = await startReceiver({ answer: { hang: true } });
  const hanging = fetch(receiver.url, { method: 'POST', body: 'x' });
  await receiver.until(1);
  const failed = expect(hanging).rejects.toThrow();
  await receiver[Symbol.asyncDispose]();
  await failed;
});
