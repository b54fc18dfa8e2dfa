import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startHelping } from '../../../src/dispatcher/helping.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { silentLogger } from '../../support/loggers.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a crawler whose lead has died is woken with the next look, also by a process that has no room to help', async () => {
  const woken: string[] = [];
  const nobody = () => Promise.reject(new Error('nobody is helped here'));
  const helping = startHelping({
    store: { crawlers: { get: nobody } as never },
    scheduler: { wake: async (name, key) => void woken.push(`${name} ${key}`) },
    shares: {
      wanted: async () => ({ helper: [], lead: ['a', 'b'] }),
      join: nobody,
    },
    clock: { now: () => new Date() },
    logger: silentLogger,
    processId: 'here',
    leaseMs: 8_000,
    runSlots: createFairPool({ name: 'runs', capacity: 10 }),
    roomFor: () => 0,
    hasRoomFor: () => false,
    isLeading: () => false,
    createRun: () => {
      throw new Error('nobody is helped here');
    },
  });
  await vi.advanceTimersByTimeAsync(2_100);
  expect(woken).toEqual(['crawl a', 'crawl b']);
  await helping.close();
});
