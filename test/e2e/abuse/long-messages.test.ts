import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

/** An object of 40,000 members that no two have in common: the slowest JSON of its length. */
const SLOW = `{${Array.from({ length: 40_000 }, (_, n) => `"k${n}":1`).join()}}`;
const MESSAGES = 16;

test.each([
  ['REST', `/crawler/${NORMAL}/flood/push_batch`],
  ['Connect', '/queuedcrawler.v1.PushService/PushBatch'],
])('messages over %s that take long to read hold up no other tenant', async (_, path) => {
  await using app = await startApp();
  const authorization = `Bearer ${ADMIN}`;
  const account = { name: 'neighbour', email: 'neighbour@example.com' };
  const made = await app.rest('POST', '/accounts', account, { authorization });
  const token = made.json.normal_token as string;
  let answered = 0;
  const messages = Array.from({ length: MESSAGES }, async () => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${NORMAL}` };
    const { status } = await app.rest('POST', path, SLOW, headers);
    answered += 1;
    return status;
  });
  // Until the first is read.
  await eventually(() => expect(answered).toBeGreaterThan(0));
  expect((await app.rest('GET', `/crawler/${token}`)).status).toBe(200);
  expect(answered).toBeLessThan(MESSAGES / 4);
  const refusals = await Promise.all(messages);
  expect(refusals.every((status) => status === 400 || status === 404 || status === 422)).toBe(true);
});
