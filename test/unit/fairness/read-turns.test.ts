import { expect, test } from 'vitest';
import { createReadTurns } from '../../../src/fairness/read-turns.ts';

const LONG = 16 * 1_024;

/** Turns whose iterations of the event loop the test runs. */
function readTurns() {
  const iterations: (() => void)[] = [];
  const pauses: [run: () => void, ms: number][] = [];
  let nowMs = 0;
  const read: string[] = [];
  const turns = createReadTurns({
    defer: (run) => void iterations.push(run),
    pause: (run, ms) => void pauses.push([run, ms]),
    now: () => nowMs,
  });
  const settle = async (): Promise<void> => {
    for (let n = 0; n < 5; n += 1) await Promise.resolve();
  };
  return {
    read,
    iterations,
    pauses,
    async arrive(name: string, bytes = LONG): Promise<void> {
      const [accountId = ''] = name.split('-');
      void turns.take({ accountId }, bytes).then(() => read.push(name));
      await settle();
    },
    async iterate(tookMs = 0): Promise<void> {
      nowMs += tookMs;
      for (const run of iterations.splice(0)) run();
      await settle();
    },
  };
}

test('one message is read in an iteration, those of accounts in turn', async () => {
  const { read, iterations, arrive, iterate } = readTurns();
  for (const name of ['flood-1', 'flood-2', 'flood-3', 'other-1']) await arrive(name);
  expect(read).toEqual(['flood-1']);
  await iterate();
  await iterate();
  expect(read).toEqual(['flood-1', 'flood-2', 'other-1']);
  await arrive('other-2');
  await iterate();
  await iterate();
  expect(read.slice(3)).toEqual(['flood-3', 'other-2']);
  await iterate();
  expect(iterations).toEqual([]);
  await arrive('flood-4');
  expect(read.at(-1)).toBe('flood-4');
});

test('short messages wait for nobody', async () => {
  const { read, arrive } = readTurns();
  await arrive('flood-1');
  await arrive('flood-2');
  await arrive('other-1', LONG - 1);
  expect(read).toEqual(['flood-1', 'other-1']);
});

test('after a message that took long, others have as much time', async () => {
  const { read, pauses, arrive, iterate } = readTurns();
  for (const name of ['flood-1', 'flood-2', 'flood-3']) await arrive(name);
  await iterate(20);
  expect(read).toEqual(['flood-1', 'flood-2']);
  await iterate(150);
  await arrive('flood-4');
  expect([read.length, pauses.map(([, ms]) => ms)]).toEqual([2, [150]]);
  pauses.shift()?.[0]();
  await iterate();
  expect(read.slice(2)).toEqual(['flood-3', 'flood-4']);
});
