import { expect, test } from 'vitest';
import { createSharedLookup } from '../../../src/service/shared-lookup.ts';

test('look-ups of one key share the reading after the one under way, so none is told what was read before it asked', async () => {
  let value = 1;
  const gates: PromiseWithResolvers<void>[] = [];
  const look = createSharedLookup(async () => {
    const read = value;
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    await gate.promise;
    return read;
  });
  const first = look('a');
  value = 2;
  const others = Array.from({ length: 100 }, () => look('a'));
  expect(gates).toHaveLength(1);
  gates[0]?.resolve();
  expect(await first).toBe(1);
  await new Promise(setImmediate);
  value = 3;
  const late = look('a');
  gates[1]?.resolve();
  expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
  await new Promise(setImmediate);
  gates[2]?.resolve();
  expect(await late).toBe(3);
  expect(gates).toHaveLength(3);
});

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
