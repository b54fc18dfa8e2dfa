import { expect, test } from 'vitest';
import type { EndpointAnswer } from '../../../src/domain/delivery.ts';
import { createAttemptDelivery } from '../../../src/service/deliveries/attempt-delivery.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { deliveryOf, webhookCrawler } from '../../support/webhook-fixtures.ts';

const SECOND = 1_000;
const DAY = 24 * 3_600 * SECOND;

/** The outcome of an attempt that the endpoint answered so, with two retries in the schedule. */
async function outcomeOf(
  acknowledged: boolean,
  answer: EndpointAnswer,
  attempt = 1,
  wasAttempted = attempt > 1,
) {
  const clock = createFrozenClock();
  const startedAt = clock.now();
  const log = { attempt, startedAt, status: 0, durationMs: 5, error: acknowledged ? '' : 'no' };
  const attemptDelivery = createAttemptDelivery({
    webhook: {
      deliver: async () => ({ acknowledged, log, answer }),
      deliverTogether: () => Promise.reject(new Error('it is one delivery')),
    },
    clock,
    schedule: [10 * SECOND, 60 * SECOND],
    // Exactly the schedule's wait.
    random: () => 0.5,
  });
  const delivery = deliveryOf('x', { attempt, wasAttempted });
  const never = new AbortController().signal;
  const { outcomes } = await attemptDelivery(webhookCrawler(), [delivery], never);
  const [outcome] = outcomes as readonly [(typeof outcomes)[number]];
  const { rid, crawlerId } = delivery;
  expect(outcome).toMatchObject({ rid, crawlerId, attempt });
  // Only an attempt that was made is in the list of attempts.
  if (answer.kind !== 'no_socket') expect(outcome.log).toEqual(log);
  const after = (date: Date | undefined) => date && date.getTime() - startedAt.getTime();
  return {
    kind: outcome.kind,
    billed: outcome.billed,
    dueAfterMs: after(outcome.dueAt),
    expiresAfterMs: after(outcome.expiresAt),
  };
}

const refused: EndpointAnswer = { kind: 'other' };

test('an acknowledged page is kept for a day, for replays', async () => {
  const outcome = await outcomeOf(true, { kind: 'acknowledged', answerMs: 1 });
  expect(outcome).toMatchObject({ kind: 'delivered', expiresAfterMs: DAY });
});

test.each([
  [1, 10 * SECOND],
  [2, 60 * SECOND],
])('after failed attempt %i the next is due in %i ms', async (attempt, dueAfterMs) => {
  expect(await outcomeOf(false, refused, attempt)).toMatchObject({ kind: 'retry', dueAfterMs });
});

test.each([1, 3])(
  'a delivery that this process had no socket for stays due, and its attempt %i does not count',
  async (attempt) => {
    expect(await outcomeOf(false, { kind: 'no_socket' }, attempt)).toEqual({
      kind: 'release',
      billed: false,
      dueAfterMs: 0,
      expiresAfterMs: undefined,
    });
  },
);

test('a delivery whose schedule is used up has failed, and keeps its expiry', async () => {
  expect(await outcomeOf(false, refused, 3)).toMatchObject({
    kind: 'failed',
    dueAfterMs: undefined,
    expiresAfterMs: undefined,
  });
});

test.each<[why: string, answer: EndpointAnswer, dueAfterMs: number]>([
  ['later than the schedule', { kind: 'overloaded', retryAfterMs: 30 * SECOND }, 30 * SECOND],
  ['earlier than the schedule', { kind: 'overloaded', retryAfterMs: SECOND }, 10 * SECOND],
  ['at no certain time', { kind: 'overloaded' }, 10 * SECOND],
])('an endpoint that asks for a retry %s', async (_why, answer, dueAfterMs) => {
  expect(await outcomeOf(false, answer)).toMatchObject({ kind: 'retry', dueAfterMs });
});

// The first attempt was billed with its crawl. One that a crash has interrupted may never have been sent.
test.each([
  [1, false, false],
  [2, true, true],
  [2, false, false],
])('attempt %i, another one having ended: %s, is billed: %s', async (attempt, ended, billed) => {
  expect(await outcomeOf(false, refused, attempt, ended)).toMatchObject({ billed });
  expect(await outcomeOf(true, refused, attempt, ended)).toMatchObject({ billed });
});
