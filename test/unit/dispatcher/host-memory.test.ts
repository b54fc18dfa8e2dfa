import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HostAnswer } from '../../../src/dispatcher/host-health.ts';
import { createHostMemory } from '../../../src/dispatcher/host-memory.ts';
import type { HostReport, HostStore } from '../../../src/store/store.ts';
import { silentLogger } from '../../support/loggers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A memory of one process that works alone. */
function memoryOf(hosts: Partial<HostStore>) {
  return createHostMemory({
    hosts: hosts as HostStore,
    clock: { now: () => new Date() },
    logger: silentLogger,
    processId: 'p',
    isShared: () => false,
  });
}

test('what is known of hosts is saved before queues are counted, and queues are counted in turn', async () => {
  const saved: HostReport[] = [];
  const counted: string[] = [];
  let count = Promise.withResolvers<void>();
  const hosts = {
    reports: async () => [],
    save: async (reports: readonly HostReport[]) => void saved.push(...reports),
    async longest(crawlerId: string) {
      counted.push(crawlerId);
      await count.promise;
      return { hosts: [{ host: 'gone.example', queued: 7, nextDueAt: new Date() }], total: 1 };
    },
  };
  const memory = memoryOf(hosts);
  const job = { rid: '1', host: 'gone.example' } as never;
  for (const crawlerId of ['first', 'second']) {
    const lanes = memory.lanesOf(crawlerId);
    lanes.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
    for (let n = 0; n < 3; n += 1) {
      lanes.add(job);
      lanes.started(job, Date.now());
      lanes.remove(job);
      lanes.ended('1', { answer: { kind: 'away', reason: 'timeout' } }, Date.now());
    }
  }
  await vi.advanceTimersByTimeAsync(5_001);
  expect(saved.map(({ crawlerId }) => crawlerId)).toEqual(['first', 'second']);
  expect(counted).toEqual(['first']);
  count.resolve();
  count = Promise.withResolvers<void>();
  await vi.advanceTimersByTimeAsync(6_000);
  expect(saved.at(-1)).toMatchObject({ crawlerId: 'first', heldUp: { queued: 7 } });
  expect(counted).toEqual(['first', 'second']);
  count.resolve();
  await vi.advanceTimersByTimeAsync(6_000);
  expect(saved.at(-1)).toMatchObject({ crawlerId: 'second', heldUp: { queued: 7 } });
  await memory.close();
});

test('the hosts of a crawler that runs are kept, and what is forgotten of others holds its delays', async () => {
  const hosts = { reports: async () => [], save: async () => undefined };
  const memory = memoryOf(hosts);
  const politeness = { maxPerHost: 0, delayMs: 60_000, robotsTxt: false };
  const job = { rid: '1', host: 'slow.example' } as never;
  const crawl = (crawlerId: string) => {
    const lanes = memory.lanesOf(crawlerId);
    lanes.keep({ accountId: 'a', politeness, retryWindowHours: 48 });
    lanes.led(undefined);
    lanes.add(job);
    lanes.started(job, Date.now());
    lanes.remove(job);
    lanes.ended('1', {}, Date.now());
    return lanes;
  };
  const unwatch = crawl('runs').watch(
    () => undefined,
    () => undefined,
  );
  crawl('rests');
  const runs = memory.lanesOf('runs');
  for (let n = 0; n < 150; n += 1) memory.lanesOf(`other-${n}`);
  expect(memory.lanesOf('runs')).toBe(runs);
  unwatch();
  const forgottenMs = Date.now();
  await vi.advanceTimersByTimeAsync(5_000);
  const again = memory.lanesOf('rests');
  again.keep({ accountId: 'a', politeness, retryWindowHours: 48 });
  again.led(undefined);
  again.add(job);
  expect(again.nextAt(Date.now())).toBe(forgottenMs + 60_000);
  await memory.close();
});

test('what is forgotten of a crawler is in its report, and is read again', async () => {
  const reports = new Map<string, HostReport>();
  const hosts = {
    reports: async (crawlerId: string) =>
      [...reports.values()].filter((each) => each.crawlerId === crawlerId),
    async save(all: readonly HostReport[]) {
      for (const each of all) reports.set(each.crawlerId, each);
    },
    longest: async () => ({ hosts: [], total: 0 }),
  };
  const memory = memoryOf(hosts);
  const openOthers = () => {
    for (let n = 0; n < 150; n += 1) memory.lanesOf(`other-${n}`);
  };
  const lanes = memory.lanesOf('first');
  lanes.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
  const job = { rid: '1', host: 'gone.example' } as never;
  for (let n = 0; n < 3; n += 1) {
    lanes.add(job);
    lanes.started(job, Date.now());
    lanes.remove(job);
    lanes.ended('1', { answer: { kind: 'away', reason: 'timeout' } }, Date.now());
  }
  const known = [{ host: 'gone.example', health: { kind: 'away', failures: 3 } }];
  openOthers();
  expect(memory.lanesOf('first')).toBe(lanes);
  await vi.advanceTimersByTimeAsync(5_001);
  openOthers();
  const again = memory.lanesOf('first');
  expect(again).not.toBe(lanes);
  await vi.advanceTimersByTimeAsync(0);
  expect(again.states(Date.now())).toMatchObject(known);
  await memory.close();
});

test('of several reports on a host the newest counts, in whatever order they are read', async () => {
  const now = Date.now();
  const none = { running: 0, tries: 3, tookMs: 9, failures: {}, perSecond: 0 };
  const away = {
    kind: 'away',
    reason: 'timeout',
    failures: 3,
    spacingMs: 0,
    untilMs: now + 60_000,
    awaySinceMs: now - 9_000,
    asideMs: 60_000,
  } as const;
  const older = { ...none, host: 'back.example', lastMs: now - 5_000, health: away };
  const newer = { ...none, host: 'back.example', lastMs: now - 1_000 };
  const gone = { ...none, host: 'gone.example', lastMs: now - 1_000, health: away };
  const was = { ...none, host: 'gone.example', lastMs: now - 5_000 };
  const reports = [
    { crawlerId: 'first', processId: 'a', hosts: [older, gone] },
    { crawlerId: 'first', processId: 'b', hosts: [newer, was] },
  ];
  for (const read of [reports, reports.toReversed()]) {
    const hosts = { reports: async () => read, save: async () => undefined };
    const memory = memoryOf(hosts);
    const lanes = memory.lanesOf('first');
    lanes.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
    await vi.advanceTimersByTimeAsync(0);
    const inTrouble = lanes.states(now).filter(({ health }) => health !== undefined);
    expect(inTrouble.map(({ host }) => host)).toEqual(['gone.example']);
    await memory.close();
  }
});

test('a wait for a proxy is not taken from a report: the crawler may have changed', async () => {
  const now = Date.now();
  const waits = { kind: 'away', reason: 'proxy_unavailable', failures: 3, spacingMs: 0 } as const;
  const health = { ...waits, untilMs: now + 900_000, sinceMs: now, asideMs: 0 };
  const state = { running: 0, tries: 0, tookMs: 0, failures: {}, perSecond: 0, lastMs: 0 };
  const report = {
    crawlerId: 'first',
    processId: 'a',
    hosts: [{ ...state, host: 'a.example', health }],
  };
  const hosts = { reports: async () => [report], save: async () => undefined };
  const memory = memoryOf(hosts);
  const lanes = memory.lanesOf('first');
  lanes.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
  await vi.advanceTimersByTimeAsync(0);
  expect(lanes.states(now)).toEqual([]);
  await memory.close();
});

test('ordinary hosts are forgotten after the run, and those in trouble or with a delay are kept', async () => {
  const hosts = { reports: async () => [], save: async () => undefined };
  const memory = memoryOf(hosts);
  const lanes = memory.lanesOf('first');
  const politeness = {
    maxPerHost: 0,
    delayMs: 0,
    robotsTxt: false,
    hosts: [{ pattern: 'paced.example', delayMs: 60_000, paused: false }],
  };
  lanes.keep({ accountId: 'a', politeness, retryWindowHours: 48 });
  const unwatch = lanes.watch(
    () => undefined,
    () => undefined,
  );
  const crawl = (host: string, answer: HostAnswer) => {
    const job = { rid: host, host } as never;
    lanes.add(job);
    lanes.started(job, Date.now());
    vi.advanceTimersByTime(1);
    lanes.ended(host, { answer }, Date.now());
  };
  for (let n = 0; n < 50; n += 1) crawl(`host-${n}.example`, { kind: 'answered' });
  for (let n = 0; n < 3; n += 1) crawl('gone.example', { kind: 'away', reason: 'timeout' });
  crawl('busy.example', { kind: 'slow', retryAfterMs: 300_000 });
  crawl('paced.example', { kind: 'answered' });
  const pacedMs = Date.now() - 1;
  await vi.advanceTimersByTimeAsync(6_000);
  expect(lanes.weight()).toBe(53);
  unwatch();
  await vi.advanceTimersByTimeAsync(6_000);
  expect(memory.lanesOf('first')).toBe(lanes);
  expect(lanes.weight()).toBe(3);
  expect(lanes.states(Date.now())).toMatchObject([
    { host: 'gone.example', health: { kind: 'away' } },
    { host: 'busy.example', health: { kind: 'slow' } },
  ]);
  const job = { rid: 'next', host: 'paced.example' } as never;
  lanes.add(job);
  expect(lanes.nextAt(Date.now())).toBe(pacedMs + 60_000);
  lanes.remove(job);
  await vi.advanceTimersByTimeAsync(66_000);
  expect(lanes.weight()).toBe(2);
  await memory.close();
});

test('the hosts of all crawlers without a run are bounded together', async () => {
  const none = { running: 0, tries: 3, tookMs: 9, failures: {}, perSecond: 0 };
  const nowMs = Date.now();
  const health = {
    kind: 'away',
    reason: 'timeout',
    failures: 3,
    spacingMs: 0,
    untilMs: nowMs + 60_000,
    awaySinceMs: nowMs,
    asideMs: 60_000,
  } as const;
  const gone = Array.from({ length: 2_000 }, (_, n) => ({
    ...none,
    host: `gone-${n}.example`,
    lastMs: nowMs,
    health,
  }));
  const hosts = {
    reports: async (crawlerId: string) =>
      crawlerId.startsWith('crawler') ? [{ crawlerId, processId: 'p', hosts: gone }] : [],
    save: async () => undefined,
  };
  const memory = memoryOf(hosts);
  const open = (crawlerId: string) => {
    const lanes = memory.lanesOf(crawlerId);
    lanes.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
    return lanes;
  };
  const hasFew = memory.lanesOf('few');
  hasFew.keep({ accountId: 'a', politeness: undefined, retryWindowHours: 48 });
  hasFew.learn(gone.slice(0, 1), nowMs);
  const crawlerIds = Array.from({ length: 15 }, (_, n) => `crawler-${n}`);
  const [first] = crawlerIds.map(open);
  const unwatch = first?.watch(
    () => undefined,
    () => undefined,
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(memory.troubled().away).toBe(15 * 2_000 + 1);
  await vi.advanceTimersByTimeAsync(5_001);
  // The first one has a run. Of the others, 20,000 hosts are kept: of equal crawlers, those that were used last.
  const known = crawlerIds.filter((crawlerId) => memory.states(crawlerId) !== undefined);
  expect(known).toEqual(['crawler-0', ...crawlerIds.slice(6)]);
  expect(memory.states('few')).toHaveLength(1);
  // Hosts that are put aside are in a report: a pace group does not wait for what was forgotten of them.
  const paced = memory.lanesOf('paced');
  const politeness = { maxPerHost: 0, delayMs: 60_000, robotsTxt: false, group: 'g' };
  paced.keep({ accountId: 'a', politeness, retryWindowHours: 48 });
  paced.led(undefined);
  const job = { rid: 'paced', host: 'paced.example' } as never;
  paced.add(job);
  expect(paced.next(Date.now(), false)).toBe(job);
  paced.remove(job);
  // What was forgotten is read again when it is needed.
  const again = open('crawler-1');
  await vi.advanceTimersByTimeAsync(0);
  expect(again.troubled().away).toBe(2_000);
  unwatch?.();
  await memory.close();
});
