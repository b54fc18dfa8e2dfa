import { expect, test } from 'vitest';
import { createFloodWatch } from '../../../src/engine/browser/flood-watch.ts';

/** What messages have cost by look `n`, in seconds: the browser and two pages. */
interface Times {
  readonly browser: number;
  readonly first: number;
  readonly second: number;
}

const BROWSER = 1;
const [FIRST, SECOND] = [2, 3];

function processes({ browser, first, second }: Times) {
  return [
    { pid: BROWSER, kind: 'browser' as const, messageSeconds: browser },
    { pid: FIRST, kind: 'renderer' as const, messageSeconds: first },
    { pid: SECOND, kind: 'renderer' as const, messageSeconds: second },
  ];
}

/** What the watch ends, by look; the browser replies to each ping just before the looks `replies`. */
async function ended(
  count: number,
  times: (n: number) => Times,
  replies: readonly number[] = [],
): Promise<Record<number, number>> {
  let reply = () => {};
  const find = createFloodWatch(
    () =>
      new Promise<void>((resolve) => {
        reply = resolve;
      }),
  );
  const all: Record<number, number> = {};
  for (let n = 0; n < count; n += 1) {
    if (replies.includes(n)) reply();
    await Promise.resolve();
    const pid = find(processes(times(n)));
    if (pid !== undefined) all[n] = pid;
  }
  return all;
}

const flood = (n: number): Times => ({ browser: 5 + n * 0.2, first: 30, second: 2 + n * 0.1 });

test('of a browser without a reply for three seconds, the page that sends most is ended', async () => {
  expect(await ended(8, flood)).toEqual({ 6: SECOND });
});

test('another is ended only when the browser had time for what the first has sent', async () => {
  expect(await ended(18, flood)).toEqual({ 6: SECOND, 16: SECOND });
  expect(await ended(18, flood, [7])).toEqual({ 6: SECOND, 16: SECOND });
});

test('nothing is ended when the browser replies, or soon after it has', async () => {
  expect(await ended(6, flood)).toEqual({});
  expect(await ended(9, flood, [3])).toEqual({});
  expect(await ended(30, flood, [4, 9, 14, 19, 24])).toEqual({});
});

test('on a busy machine it takes as long as the messages do', async () => {
  const slow = (n: number): Times => ({ browser: n * 0.05, first: 1, second: n * 0.03 });
  expect(await ended(12, slow)).toEqual({ 10: SECOND });
});

test('of several pages that send, each is ended', async () => {
  const both = (n: number): Times => ({ browser: n, first: n * 0.1, second: n * 0.11 });
  expect(await ended(8, both)).toEqual({ 6: SECOND });
});

test.each([
  ['encodes a picture', { browser: 0.02, second: 0.01 }],
  ['takes what no page sends', { browser: 0.5, second: 0.005 }],
])('nothing is ended when the browser %s', async (_, each) => {
  const times = (n: number): Times => ({
    browser: n * each.browser,
    first: 1,
    second: n * each.second,
  });
  expect(await ended(20, times)).toEqual({});
});
