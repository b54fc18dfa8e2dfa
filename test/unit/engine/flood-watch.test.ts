import { expect, test } from 'vitest';
import { createFloodWatch } from '../../../src/engine/browser/flood-watch.ts';

/** Processor time in seconds until look `n`, of the thread that takes messages and of two pages. */
interface Times {
  readonly messages: number;
  readonly first: number;
  readonly second: number;
}

const BROWSER = 1;
const [FIRST, SECOND] = [2, 3];

function processes({ messages, first, second }: Times) {
  return [
    { pid: BROWSER, kind: 'browser' as const, cpuSeconds: 99, messageSeconds: messages },
    { pid: FIRST, kind: 'renderer' as const, cpuSeconds: first, messageSeconds: undefined },
    { pid: SECOND, kind: 'renderer' as const, cpuSeconds: second, messageSeconds: undefined },
  ];
}

/** What the watch ends, by look, when the browser does not reply before the look `repliesAt`. */
async function ended(
  count: number,
  times: (n: number) => Times,
  repliesAt = Number.POSITIVE_INFINITY,
) {
  const { promise: reply, resolve } = Promise.withResolvers<void>();
  const find = createFloodWatch(() => reply);
  const all: Record<number, number> = {};
  for (let n = 0; n < count; n += 1) {
    if (n === repliesAt) resolve();
    await Promise.resolve();
    const pid = find(processes(times(n)));
    if (pid !== undefined) all[n] = pid;
  }
  return all;
}

const flood = (n: number): Times => ({ messages: 5 + n * 0.2, first: 30, second: 2 + n * 0.3 });

test('of a browser without a reply for two seconds, the page that works most is ended', async () => {
  expect(await ended(6, flood)).toEqual({ 4: SECOND });
});

test('another is ended only when the browser had time for what the first has sent', async () => {
  expect(await ended(14, flood)).toEqual({ 4: SECOND, 12: SECOND });
});

test('nothing is ended when the browser replies, or after it has', async () => {
  expect(await ended(4, flood)).toEqual({});
  expect(await ended(7, flood, 3)).toEqual({});
});

test('on a busy machine it takes as long as the messages do', async () => {
  const slow = (n: number): Times => ({ messages: n * 0.05, first: 1, second: n * 0.1 });
  expect(await ended(12, slow)).toEqual({ 8: SECOND });
});

test.each([
  ['encodes a picture while a page computes', { messages: 0.02, second: 0.5 }],
  ['takes what other processes send', { messages: 0.5, second: 0.005 }],
])('nothing is ended when the browser %s', async (_, each) => {
  const times = (n: number): Times => ({
    messages: n * each.messages,
    first: 1,
    second: n * each.second,
  });
  expect(await ended(15, times)).toEqual({});
});
