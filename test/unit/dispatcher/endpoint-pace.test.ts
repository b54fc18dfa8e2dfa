import { expect, test } from 'vitest';
import { createEndpointPace, type PacedPost } from '../../../src/dispatcher/endpoint-pace.ts';
import type { EndpointAnswer } from '../../../src/domain/delivery.ts';

const ACK_MS = 200;

/**
 * A receiver with some places, each of which takes `ms` for a post; what waits longer than the
 * acknowledgement time has failed.
 */
interface Receiver {
  readonly places: number;
  readonly ms: number;
  readonly answer?: (answerMs: number, nowMs: number) => EndpointAnswer;
}

interface Run {
  readonly posts: number;
  readonly delivered: number;
  readonly elapsedMs: number;
  readonly limit: number;
  readonly mostInFlight: number;
}

/** Delivers `results` with the pace deciding; failed ones are posted again. In virtual time. */
function simulate(
  results: number,
  receiver: Receiver,
  pace = createEndpointPace({ ackTimeoutMs: ACK_MS }),
  from = 0,
): Run {
  const freeAt: number[] = Array.from({ length: receiver.places }, () => 0);
  const under: {
    readonly post: PacedPost;
    readonly endMs: number;
    readonly answer: EndpointAnswer;
  }[] = [];
  let now = from;
  let posts = 0;
  let delivered = 0;
  let mostInFlight = 0;
  while (delivered < results && posts < results * 10) {
    while (delivered + under.length < results && pace.room(now) > 0) {
      const place = freeAt.indexOf(Math.min(...freeAt));
      const doneMs = Math.max(freeAt[place] ?? 0, now) + receiver.ms;
      freeAt[place] = doneMs;
      const answerMs = doneMs - now;
      const answer: EndpointAnswer =
        answerMs > ACK_MS
          ? { kind: 'overloaded' }
          : (receiver.answer?.(answerMs, now) ?? { kind: 'acknowledged', answerMs });
      under.push({ post: pace.start(now), endMs: now + Math.min(answerMs, ACK_MS), answer });
      posts += 1;
      mostInFlight = Math.max(mostInFlight, under.length);
    }
    under.sort((left, right) => left.endMs - right.endMs);
    const opensAt = pace.opensAt(now) ?? Number.POSITIVE_INFINITY;
    const next = under[0];
    if (next === undefined || (opensAt > now && opensAt < next.endMs)) {
      expect(opensAt).toBeLessThan(Number.POSITIVE_INFINITY);
      now = opensAt;
      continue;
    }
    under.shift();
    now = next.endMs;
    if (next.answer.kind === 'acknowledged') delivered += 1;
    pace.end(next.post, next.answer, now);
  }
  return { posts, delivered, elapsedMs: now - from, limit: pace.limit, mostInFlight };
}

test.for([2, 5, 10, 20, 40, 60, 100, 130, 150, 180])(
  'a receiver of one place that takes %i ms gets few posts twice and is kept busy',
  (ms) => {
    const run = simulate(200, { places: 1, ms });
    expect(run.posts).toBeLessThanOrEqual(200 * 1.05);
    expect(run.elapsedMs).toBeLessThan(200 * ms * 1.15 + 1_000);
  },
);

test.for([
  [2, 30],
  [4, 100],
  [8, 60],
  [16, 20],
  [16, 120],
])('a receiver of %i places that take %i ms gets few posts twice', ([places, ms]) => {
  const run = simulate(2_000, { places: places ?? 1, ms: ms ?? 0 });
  expect(run.posts).toBeLessThanOrEqual(2_000 * 1.05);
  expect(run.elapsedMs).toBeLessThan((2_000 * (ms ?? 0) * 1.5) / (places ?? 1) + 2_000);
});

test.for([1, 20, 45, 60, 100, 150])(
  'a receiver that takes everything in %i ms gets many at once soon, none twice',
  (ms) => {
    const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
    const first = simulate(ms < 50 ? 100 : 500, { places: 10_000, ms }, pace);
    expect(first.posts).toBe(ms < 50 ? 100 : 500);
    expect(pace.limit).toBeGreaterThanOrEqual(48);
  },
);

test('a quick receiver at which posts queue gets no more than it can use', () => {
  const run = simulate(5_000, { places: 4, ms: 0.5 });
  expect(run.posts).toBe(5_000);
  expect(run.limit).toBeLessThan(64);
  expect(run.elapsedMs).toBeLessThan((5_000 * 0.5) / 4 + 100);
});

test('a failure halves the limit once for all that were in flight together', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  simulate(100, { places: 10_000, ms: 1 }, pace);
  const before = pace.limit;
  const posts = Array.from({ length: before }, () => pace.start(1_000));
  for (const post of posts) pace.end(post, { kind: 'overloaded' }, 1_200);
  expect(pace.limit).toBe(Math.floor(before / 2));
  expect(pace.state).toBe('steady');
});

test('an endpoint that does not answer gets one post at a time, at growing distances, and all of it again once it answers', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  let now = 0;
  const gaps: number[] = [];
  for (let n = 0; n < 12; n++) {
    expect(pace.room(now)).toBe(1);
    const post = pace.start(now);
    expect(pace.room(now)).toBe(0);
    pace.end(post, { kind: 'overloaded' }, now);
    expect(pace.state).toBe('waiting');
    const opensAt = pace.opensAt(now) ?? now;
    gaps.push(opensAt - now);
    now = opensAt;
  }
  expect(gaps.slice(0, 3)).toEqual([200, 400, 800]);
  expect(gaps.at(-1)).toBe(10_000);
  const run = simulate(100, { places: 10_000, ms: 1 }, pace, now);
  expect(run.posts).toBe(100);
  expect(run.elapsedMs).toBeLessThan(1_000);
});

test('Retry-After is waited for, whatever the limit', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  simulate(50, { places: 10_000, ms: 1 }, pace);
  const post = pace.start(1_000);
  pace.end(post, { kind: 'overloaded', retryAfterMs: 30_000 }, 1_000);
  expect(pace.state).toBe('waiting');
  expect(pace.room(30_999)).toBe(0);
  expect(pace.opensAt(1_000)).toBe(31_000);
  expect(pace.room(31_000)).toBeGreaterThan(0);
  pace.end(pace.start(31_000), { kind: 'acknowledged', answerMs: 1 }, 31_001);
  expect(pace.state).toBe('steady');
});

test('one Retry-After holds up a callback URL for 15 minutes at most, and the next answer counts', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  const dayMs = 86_400_000;
  pace.end(pace.start(0), { kind: 'overloaded', retryAfterMs: dayMs }, 0);
  expect([pace.opensAt(0), pace.room(899_999), pace.room(900_000)]).toEqual([900_000, 0, 1]);
  pace.end(pace.start(900_000), { kind: 'overloaded', retryAfterMs: dayMs }, 900_000);
  expect(pace.opensAt(900_000)).toBe(1_800_000);
  pace.end(pace.start(1_800_000), { kind: 'acknowledged', answerMs: 1 }, 1_800_001);
  expect(pace.room(1_800_001)).toBeGreaterThan(0);
});

test('a post that was not sent leaves no trace', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  pace.end(pace.start(0), undefined, 0);
  expect([pace.limit, pace.inFlight, pace.state]).toEqual([1, 0, 'starting']);
});

test('answers that say nothing of the load change nothing', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  simulate(50, { places: 10_000, ms: 1 }, pace);
  const before = pace.limit;
  for (let n = 0; n < 20; n++) pace.end(pace.start(n), { kind: 'other' }, n);
  expect(pace.limit).toBe(before);
});

test('an endpoint that becomes slow for good is learned anew', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  const quick = simulate(300, { places: 10_000, ms: 2 }, pace);
  const slow = simulate(1_000, { places: 1, ms: 20 }, pace, quick.elapsedMs);
  // 256 at once, of which ten are taken in time; then 128, 64, and so on.
  expect(slow.posts).toBeLessThan(1_000 + 800);
  expect(slow.limit).toBeLessThan(10);
  const wide = simulate(3_000, { places: 10_000, ms: 110 }, pace, 1e6);
  expect(wide.posts).toBeLessThan(3_000 * 1.05);
  expect(wide.limit).toBeGreaterThan(20);
});

test.for([
  [1, 5],
  [8, 20],
])(
  'what a receiver of %i places of %i ms takes within a time is about what it then takes',
  ([places = 1, ms = 1]) => {
    const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
    expect(pace.takesWithin(1_000, 0)).toBe(1);
    const { elapsedMs } = simulate(400, { places, ms }, pace);
    const within = pace.takesWithin(1_000, elapsedMs);
    const takes = (1_000 / ms) * places;
    expect(within).toBeGreaterThan(takes * 0.5);
    expect(within).toBeLessThan(takes * 1.5);
  },
);

test('a receiver that asks for a pause takes nothing until it has passed', () => {
  const pace = createEndpointPace({ ackTimeoutMs: ACK_MS });
  pace.end(pace.start(0), { kind: 'acknowledged', answerMs: 5 }, 5);
  pace.end(pace.start(10), { kind: 'overloaded', retryAfterMs: 1_000 }, 15);
  expect(pace.takesWithin(500, 20)).toBe(0);
  expect(pace.takesWithin(500, 1_020)).toBeGreaterThan(0);
});
