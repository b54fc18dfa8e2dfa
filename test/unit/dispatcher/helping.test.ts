import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startHelping } from '../../../src/dispatcher/helping.ts';
import { createFairPool } from '../../../src/fairness/fair-pool.ts';
import { silentLogger } from '../../support/loggers.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

beforeEach(() => {
  vi.useFakeTimers();
  // The main thread is not busy.
  const idle = { idle: 1, active: 0, utilization: 0 };
  vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue(idle);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

type HelpingDeps = Parameters<typeof startHelping>[0];

/** Starts helping in a process that has room, and leads nothing. */
const startWith = (
  deps: Pick<HelpingDeps, 'store' | 'shares' | 'createRun'> & Partial<HelpingDeps>,
) =>
  startHelping({
    scheduler: { wake: async () => undefined, runNow: () => true },
    clock: { now: () => new Date() },
    logger: silentLogger,
    processId: 'here',
    leaseMs: 8_000,
    runSlots: createFairPool({ name: 'runs', capacity: 10 }),
    roomFor: () => 10,
    hasRoomFor: () => true,
    isLeading: () => false,
    ...deps,
  });

test('a crawler whose lead has died is woken with the next look, also by a process that has no room to help', async () => {
  const woken: string[] = [];
  const nobody = () => Promise.reject(new Error('nobody is helped here'));
  const helping = startWith({
    store: { crawlers: { get: nobody } as never },
    scheduler: {
      wake: async (name, key) => void woken.push(`${name} ${key}`),
      runNow: () => true,
    },
    shares: {
      wanted: async () => ({ helper: [], lead: ['a', 'b'], grouped: [] }),
      join: nobody,
    },
    roomFor: () => 0,
    hasRoomFor: () => false,
    createRun: () => {
      throw new Error('nobody is helped here');
    },
  });
  await vi.advanceTimersByTimeAsync(2_100);
  expect(woken).toEqual(['crawl a', 'crawl b']);
  await helping.close();
});

test('a waiting crawler of a pace group is run by the process that leads the group, however busy', async () => {
  const ran: unknown[] = [];
  const runSlots = createFairPool({ name: 'runs', capacity: 200 });
  runSlots.tryAcquire({ accountId: 'a', crawlerId: 'b' }, 150);
  const nobody = () => Promise.reject(new Error('nobody is helped here'));
  const helping = startWith({
    store: { crawlers: { get: nobody } as never },
    scheduler: { wake: nobody, runNow: (...task) => ran.push(task) > 0 },
    shares: { wanted: async () => ({ helper: ['b'], lead: [], grouped: ['a'] }), join: nobody },
    runSlots,
    createRun: () => {
      throw new Error('nobody is helped here');
    },
  });
  await vi.advanceTimersByTimeAsync(2_100);
  expect(ran).toEqual([['crawl', 'a', 'own']]);
  await helping.close();
});

test('a process that has begun to lead a crawler during its look does not help it', async () => {
  const leads = new Set<string>();
  const helped: string[] = [];
  const helping = startWith({
    store: {
      crawlers: {
        async get(crawlerId: string) {
          if (crawlerId === 'a') leads.add(crawlerId);
          return { ...webhookCrawler(), crawlerId };
        },
      } as never,
    },
    shares: {
      wanted: async () => ({ helper: ['a', 'b'], lead: [], grouped: [] }),
      join: async () => undefined,
    },
    isLeading: (crawlerId) => leads.has(crawlerId),
    createRun({ crawlerId }) {
      helped.push(crawlerId);
      return { run: async () => undefined } as never;
    },
  });
  await vi.advanceTimersByTimeAsync(2_100);
  expect(helped).toEqual(['b']);
  await helping.close();
});

test('a run that helps starts nothing more once this process leads its crawler', async () => {
  const left: string[] = [];
  const over = Promise.withResolvers<undefined>();
  const helping = startWith({
    store: { crawlers: { get: async () => webhookCrawler() } as never },
    shares: {
      wanted: async () => ({ helper: ['a'], lead: [], grouped: [] }),
      join: async () => undefined,
    },
    createRun: (_crawler, signal) =>
      ({ run: () => over.promise, leave: () => left.push(`aborted: ${signal.aborted}`) }) as never,
  });
  await vi.advanceTimersByTimeAsync(2_100);
  const [crawlerId = ''] = helping.runs.keys();
  helping.leave(crawlerId);
  expect(left).toEqual(['aborted: true']);
  over.resolve(undefined);
  await helping.close();
});
