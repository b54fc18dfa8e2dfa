import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { createWaitingGrant } from '../../../src/fairness/waiting-grant.ts';

const OURS = { accountId: 'ours' };
const OTHERS = { accountId: 'others' };

/** A pool of one slot, which another account uses, and a line for it that counts its grants. */
async function openLine() {
  const pool = createFairPool({ name: 'slots', capacity: 1 });
  const others = await pool.acquire(OTHERS, 1);
  const calls = { granted: 0 };
  const line = createWaitingGrant(pool, () => {
    calls.granted += 1;
  });
  return { pool, others, calls, line };
}

test('a grant that came is kept until it is taken, once', async () => {
  const { pool, others, calls, line } = await openLine();
  line.wait(OURS, 1);
  expect(line.waits).toBe(true);
  expect(line.take()).toBeUndefined();
  others.release();
  await turn();
  expect(calls.granted).toBe(1);
  expect(line.waits).toBe(false);
  expect(pool.used).toBe(1);
  const grant = line.take();
  expect(grant?.amount).toBe(1);
  expect(line.take()).toBeUndefined();
  grant?.release();
  expect(pool.used).toBe(0);
});

test('who is in line gets in no second time', async () => {
  const { pool, others, calls, line } = await openLine();
  line.wait(OURS, 1);
  line.wait(OURS, 1);
  expect(pool.waiting).toBe(1);
  others.release();
  await turn();
  line.take()?.release();
  await turn();
  expect(calls.granted).toBe(1);
});

test('who leaves the line gives back what came, also in the same moment', async () => {
  const { pool, others, calls, line } = await openLine();
  line.wait(OURS, 1);
  line.cancel();
  expect(pool.waiting).toBe(0);
  line.wait(OURS, 1);
  // The grant is on its way.
  others.release();
  line.cancel();
  await turn();
  expect(calls.granted).toBe(0);
  expect(pool.used).toBe(0);

  const again = await pool.acquire(OTHERS, 1);
  line.wait(OURS, 1);
  again.release();
  await turn();
  line.cancel();
  expect(line.take()).toBeUndefined();
  expect(pool.used).toBe(0);
});
