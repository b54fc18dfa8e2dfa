import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRunKeeper } from '../../../src/dispatcher/run-keeper.ts';
import type { CrawlerChanges, Lease } from '../../../src/store/store.ts';
import { silentLogger } from '../../support/loggers.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a lease that was taken after a while without any is renewed when its time has come, not with the first look', async () => {
  const looks: (number | undefined)[] = [];
  const keeper = createRunKeeper({
    store: {
      queue: {
        async visit(
          leases: readonly Lease[],
          _now: Date,
          ttlMs?: number,
        ): Promise<CrawlerChanges[]> {
          looks.push(ttlMs);
          return leases.map(({ crawlerId, epoch }) => {
            return { crawlerId, epoch, held: true, work: 0, settings: 0 };
          });
        },
      },
    },
    clock: { now: () => new Date() },
    logger: silentLogger,
    timing: { pollMs: 500, leaseMs: 15_000, renewMs: 5_000 },
  });
  await vi.advanceTimersByTimeAsync(60_000);
  const nothing = () => undefined;
  const leave = keeper.keep({
    lease: { crawlerId: 'a', owner: 'here', epoch: 1 },
    seen: { work: 0, settings: 0 },
    touch: async () => undefined,
    renewed: nothing,
    end: nothing,
    work: nothing,
    settings: nothing,
    sharing: nothing,
  });
  await vi.advanceTimersByTimeAsync(4_900);
  expect(looks).toEqual(Array.from({ length: 9 }, () => undefined));
  await vi.advanceTimersByTimeAsync(200);
  expect(looks.at(-1)).toBe(15_000);
  leave();
});
