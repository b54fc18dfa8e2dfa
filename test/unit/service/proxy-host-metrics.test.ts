import { setImmediate as turn } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { beforeEach, expect, test } from 'vitest';
import { parseProxies } from '../../../src/config/parse-proxies.ts';
import { createProxyGauges } from '../../../src/observability/proxy-gauges.ts';
import { createWaysOut } from '../../../src/service/crawls/ways-out.ts';
import type { CrawlOrder } from '../../../src/threads/crawl-threads.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

const POOL = 'p';
const HOUR_MS = 3_600_000;
const pools = parseProxies(JSON.stringify({ [POOL]: ['http://user:password@proxy.example:3128'] }));

let clock: ReturnType<typeof createFrozenClock>;
let ways: ReturnType<typeof createWaysOut>;
let registry: Registry;

beforeEach(() => {
  clock = createFrozenClock();
  ways = createWaysOut({ pools, clock, logger: silentLogger });
  registry = new Registry();
  createProxyGauges(registry, ways);
});

/** Crawls a page of a host, which takes some bytes. */
function crawl(host: string, bytes = 1): void {
  const parameters = { proxy: POOL };
  const request = { url: `http://${host}/`, method: 'GET', parameters } as const;
  const about = { tokenType: 'normal', accountId: 'a', crawlerId: 'c', politeness: undefined };
  const spec = { kind: 'record', rid: host, delivery: 'storage' };
  const order = { task: { request, ...about }, spec, isSuspect: false, retry: 0 };
  const way = ways.choose(order as unknown as CrawlOrder, 0, pools);
  if (!('end' in way)) throw new Error('no proxy may be used');
  way.task.onTraffic?.({ received: bytes, sent: 0, own: bytes });
  way.end({ originalStatus: 200 } as never);
}

/** The counters of a scrape by host. */
async function scrape(number = 'pages'): Promise<Map<string, number>> {
  const name = `queued_crawler_proxy_host_${number}_total`;
  const all = await registry.getMetricsAsJSON();
  // A reading serves one scrape.
  await turn();
  const values = all.find((each) => each.name === name)?.values ?? [];
  return new Map(values.map(({ labels, value }) => [String(labels['host']), value]));
}

const sum = (series: ReadonlyMap<string, number>): number =>
  [...series.values()].reduce((total, value) => total + value, 0);

test('hosts that are new at each scrape make a bounded number of series, and none falls', async () => {
  const seen = new Set<string>();
  let before = new Map<string, number>();
  for (let round = 1; round <= 20; round += 1) {
    // Each has more bytes than those before.
    for (let n = 0; n < 120; n += 1) crawl(`h${n}.round${round}.test:${round}`, round * 1_000 + n);
    const series = await scrape();
    for (const host of series.keys()) seen.add(host);
    for (const [host, value] of before)
      expect(series.get(host), host).toBeGreaterThanOrEqual(value);
    expect(sum(series)).toBe(round * 120);
    before = series;
    clock.advance(15_000);
  }
  expect(seen.size).toBe(101);
  expect(before.get('other')).toBe(20 * 120 - 100);
});

test('the hosts with the most bytes since the last scrape get the series that are free', async () => {
  for (let n = 0; n < 150; n += 1) crawl(`h${n}.test`, 1_000 + n);
  const first = await scrape('bytes');
  expect(first.size).toBe(101);
  expect(first.get('h149.test')).toBe(1_149);
  expect(first.has('h49.test')).toBe(false);
  // From 1,000 to 1,049.
  expect(first.get('other')).toBe(50_000 + 1_225);
  crawl('h149.test', 1);
  expect((await scrape('bytes')).get('h149.test')).toBe(1_150);
});

test('more hosts than are remembered between two scrapes are all counted', async () => {
  for (let n = 0; n < 5_000; n += 1) crawl(`h${n}.test`);
  const series = await scrape();
  expect(series.size).toBe(101);
  expect(sum(series)).toBe(5_000);
});

test('an idle host loses its series to another, and no crawl counts twice', async () => {
  for (let n = 0; n < 100; n += 1) crawl(`h${n}.test`);
  crawl('late.test');
  const before = await scrape();
  expect(before.get('h0.test')).toBe(1);
  expect(before.get('other')).toBe(1);
  clock.advance(HOUR_MS / 2);
  for (let n = 1; n < 100; n += 1) crawl(`h${n}.test`);
  clock.advance(HOUR_MS / 2);
  crawl('late.test');
  crawl('late.test');
  const after = await scrape();
  expect(after.has('h0.test')).toBe(false);
  expect(after.get('h1.test')).toBe(2);
  // What it had before was counted among the others, and stays there.
  expect(after.get('late.test')).toBe(2);
  expect(after.get('other')).toBe(1);
  // All series are taken by now.
  crawl('h0.test');
  expect((await scrape()).get('other')).toBe(2);
});
