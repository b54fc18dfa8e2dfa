import { expect, test } from 'vitest';
import type { Crawler } from '../../../src/domain/crawler.ts';
import { createMonitor } from '../../../src/service/crawlers/monitor.ts';
import type { CrawlerStore } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

type ProbeEnd = { healthy: boolean | undefined; error: string };
const HEALTHY: ProbeEnd = { healthy: true, error: '' };
const BROKEN: ProbeEnd = { healthy: false, error: 'status 500' };

/** A monitor over crawlers in memory; `answer` decides what a URL comes to, undefined for never. */
function startMonitor(crawlers: readonly Crawler[], answer: (url: string) => ProbeEnd | undefined) {
  const waiting = [...crawlers];
  const state = new Map(crawlers.map((crawler) => [crawler.crawlerId, crawler.pausedByMonitor]));
  const probes: { url: string; secrets: number }[] = [];
  let inFlight = 0;
  let most = 0;
  const mails: string[] = [];
  const task = new AbortController();
  const store: Partial<CrawlerStore> = {
    claimProbes: async (_now, _intervalMs, limit) => waiting.splice(0, limit),
    noteProbes: async () => undefined,
    async setPaused(crawlerId, change) {
      const crawler = crawlers.find((each) => each.crawlerId === crawlerId);
      if (crawler === undefined) return undefined;
      const paused = change === 'monitor_pause';
      const changed = state.get(crawlerId) !== paused;
      state.set(crawlerId, paused);
      return { crawler, changed };
    },
  };
  const monitor = createMonitor({
    store: {
      crawlers: store as CrawlerStore,
      accounts: { get: async (accountId: string) => ({ accountId, name: accountId }) } as never,
    },
    webhook: {
      async probe(crawler, signal) {
        const url = crawler.callbackUrl ?? '';
        probes.push({ url, secrets: crawler.webhookSecrets.length });
        inFlight += 1;
        most = Math.max(most, inFlight);
        const end = answer(url);
        if (end === undefined) {
          await new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error));
          });
        }
        inFlight -= 1;
        return end ?? BROKEN;
      },
    },
    access: { forget: () => undefined },
    dispatcher: { refresh: () => undefined },
    scheduler: { wake: async () => undefined },
    notices: {
      async crawlerPaused(_account, crawler) {
        mails.push(crawler.crawlerId);
        return { withdraw: async () => void mails.splice(mails.indexOf(crawler.crawlerId), 1) };
      },
    },
    probeWaitMs: async () => 0,
    onPostponed: () => undefined,
    clock: { now: () => new Date() },
    logger: silentLogger,
    intervalMs: 60_000,
    claimIntervalMs: 20,
  });
  const done = monitor({ signal: task.signal, touch: async () => undefined });
  return {
    probes,
    mails,
    isPaused: (crawler: Crawler) => state.get(crawler.crawlerId),
    done,
    most: () => most,
    add: (...more: Crawler[]) => waiting.push(...more),
    async [Symbol.asyncDispose]() {
      task.abort();
      await done;
    },
  };
}

let count = 0;
function crawlerWith(url: string, overrides: Partial<Crawler> = {}): Crawler {
  count += 1;
  const crawlerId = count.toString(16).padStart(24, '0');
  return webhookCrawler({ crawlerId, name: crawlerId, callbackUrl: url, ...overrides });
}

const many = (number: number, name: string, overrides: Partial<Crawler> = {}): Crawler[] =>
  Array.from({ length: number }, (_, n) => crawlerWith(`https://${name}.example/${n}`, overrides));

test('ten thousand crawlers are probed although one in a hundred never answers', async () => {
  const crawlers = many(10_000, 'site').map((crawler, n) =>
    n % 100 === 0 ? { ...crawler, callbackUrl: `https://dead.example/${n}` } : crawler,
  );
  await using monitor = startMonitor(crawlers, (url) =>
    url.includes('dead') ? undefined : HEALTHY,
  );
  await eventually(() => expect(monitor.probes).toHaveLength(10_000));
  // None of the hundred has come to an end.
  expect(monitor.most()).toBeGreaterThanOrEqual(100);
});

test('a thousand callbacks of one account that never answer delay nobody else', async () => {
  const hostile = many(1_000, 'tarpit', { accountId: 'hostile' });
  const paused = many(50, 'recovered', { accountId: 'honest', pausedByMonitor: true });
  const broken = many(50, 'broken', { accountId: 'honest' });
  await using monitor = startMonitor([...hostile, ...paused, ...broken], (url) =>
    url.includes('tarpit') ? undefined : url.includes('broken') ? BROKEN : HEALTHY,
  );
  await eventually(() => {
    expect(paused.map(monitor.isPaused)).toEqual(paused.map(() => false));
    expect(broken.map(monitor.isPaused)).toEqual(broken.map(() => true));
  });
  expect(hostile.some(monitor.isPaused)).toBe(false);
  // What falls due while they hang is probed as well.
  const later = many(20, 'broken-later', { accountId: 'honest' });
  monitor.add(...later);
  await eventually(() =>
    expect(monitor.probes.filter(({ url }) => url.includes('broken-later'))).toHaveLength(20),
  );
  expect(monitor.most()).toBeLessThanOrEqual(256 + 64);
});

test('a probe for which this process had no socket neither pauses nor resumes a crawler', async () => {
  const running = crawlerWith('https://running.example/');
  const paused = crawlerWith('https://paused.example/', { pausedByMonitor: true });
  {
    await using monitor = startMonitor([running, paused], () => ({
      healthy: undefined,
      error: 'no_socket: EMFILE',
    }));
    await eventually(() => expect(monitor.probes).toHaveLength(2));
    await monitor.done;
    expect([running, paused].map(monitor.isPaused)).toEqual([false, true]);
    expect(monitor.mails).toEqual([]);
  }
});

test('crawlers with the same URL share one probe, signed for each, and its answer', async () => {
  const url = 'https://shared.example/hook';
  const crawlers = ['one', 'two'].flatMap((accountId) =>
    [1, 2, 3].map((n) =>
      crawlerWith(url, { accountId, webhookSecrets: [{ secret: `whsec_${accountId}${n}` }] }),
    ),
  );
  await using monitor = startMonitor(crawlers, () => BROKEN);
  await eventually(() => expect(crawlers.map(monitor.isPaused)).toEqual(crawlers.map(() => true)));
  expect(monitor.probes).toEqual([{ url, secrets: 6 }]);
  expect(monitor.mails).toHaveLength(6);
});

test('a URL shared with an account whose probes hang has its turn with the other account', async () => {
  const hostile = many(1_000, 'tarpit', { accountId: 'hostile' });
  const filler = many(70, 'tarpit-too', { accountId: 'third' });
  const url = 'https://shared.example/hook';
  const shared = [
    crawlerWith(url, { accountId: 'hostile' }),
    crawlerWith(url, { accountId: 'honest' }),
  ];
  await using monitor = startMonitor([...hostile, ...filler, ...shared], (each) =>
    each.includes('tarpit') ? undefined : BROKEN,
  );
  await eventually(() => expect(shared.map(monitor.isPaused)).toEqual([true, true]));
});
