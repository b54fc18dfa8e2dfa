import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSharedLookup } from '../../../src/service/shared-lookup.ts';
import { eventually } from '../../support/eventually.ts';

test.each([0, 3])(
  'look-ups of one key share the reading after the one under way, so none is told what was read before it asked (rest factor %d)',
  async (restFactor) => {
    let value = 1;
    const gates: PromiseWithResolvers<void>[] = [];
    const look = createSharedLookup(
      async () => {
        const read = value;
        const gate = Promise.withResolvers<void>();
        gates.push(gate);
        await gate.promise;
        return read;
      },
      { restFactor },
    );
    const first = look('a');
    value = 2;
    const others = Array.from({ length: 100 }, () => look('a'));
    expect(gates).toHaveLength(1);
    gates[0]?.resolve();
    expect(await first).toBe(1);
    await eventually(() => expect(gates).toHaveLength(2));
    value = 3;
    const late = look('a');
    gates[1]?.resolve();
    expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
    await eventually(() => expect(gates).toHaveLength(3));
    gates[2]?.resolve();
    expect(await late).toBe(3);
    expect(gates).toHaveLength(3);
  },
);

test('a reading that fails fails those that asked for it, and no other', async () => {
  let fails = true;
  const look = createSharedLookup((key) =>
    fails ? Promise.reject(new Error('away')) : Promise.resolve(key),
  );
  const first = look('a');
  const second = look('a');
  await expect(first).rejects.toThrow('away');
  fails = false;
  await expect(second).rejects.toThrow('away');
  expect(await look('a')).toBe('a');
});

test('the next reading waits as many times as long as the last one took', async () => {
  const startedAt: number[] = [];
  const look = createSharedLookup(
    async () => {
      startedAt.push(performance.now());
      await sleep(20);
    },
    { restFactor: 3 },
  );
  await Promise.all([look('a'), look('a')]);
  const [first = 0, second = 0] = startedAt;
  expect(startedAt).toHaveLength(2);
  expect(second - first).toBeGreaterThanOrEqual(75);
});
