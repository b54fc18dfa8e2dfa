import { beforeEach, expect, test } from 'vitest';
import { parseProxies } from '../../../src/config/parse-proxies.ts';
import { createWaysOut, type WaysOut } from '../../../src/service/crawls/ways-out.ts';
import type { CrawlOrder } from '../../../src/threads/crawl-threads.ts';
import { silentLogger } from '../../support/loggers.ts';
import { seededNoise } from '../../support/seed.ts';
import { createFrozenClock } from '../../support/test-clock.ts';

const urls = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `http://user:password@10.0.${n >> 8}.${n & 255}:3128/`);

const waysOf = (list: readonly string[], clock = createFrozenClock()): WaysOut =>
  createWaysOut({ pools: parseProxies(JSON.stringify({ p: list })), clock, logger: silentLogger });

/** Crawls that the test has ordered. They have the same rids, so the same proxies, in every run. */
let orders = 0;
beforeEach(() => {
  orders = 0;
});

function order(
  more: { session?: string; rid?: string; retry?: number; account?: string; host?: string } = {},
): CrawlOrder {
  const { session, rid = `rid ${orders++}`, retry = 0, account = 'a', host = 'site.test' } = more;
  const parameters = { proxy: 'p', ...(session === undefined ? {} : { session }) };
  const url = `http://${host}/`;
  const request = {
    url,
    method: 'GET' as const,
    body: undefined,
    contentType: undefined,
    parameters,
  };
  return {
    task: {
      request,
      tokenType: 'normal',
      accountId: account,
      crawlerId: 'c',
      politeness: undefined,
    },
    spec: { kind: 'record', rid, delivery: 'storage' },
    isSuspect: false,
    retry,
  };
}

function choose(ways: WaysOut, more?: Parameters<typeof order>[0]) {
  const way = ways.choose(order(more), 0, ways.pools);
  if ('refused' in way) throw new Error(way.refused);
  return 'opensAtMs' in way ? undefined : way;
}

const result = (reason: string | undefined, originalStatus: number) =>
  ({ originalStatus, failure: reason && { reason, transient: true } }) as never;

test('a session has the same proxy in every process, and only those of a lost proxy move', () => {
  const list = urls(50);
  const [here, there] = [waysOf(list), waysOf(list)];
  const names = Array.from({ length: 500 }, (_, n) => `visitor ${n}`);
  const proxies = names.map((session) => choose(here, { session })?.proxy);
  expect(names.map((session) => choose(there, { session })?.proxy)).toEqual(proxies);
  const counts = list.map((url) => proxies.filter((proxy) => proxy === url).length);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(Math.max(...counts)).toBeLessThan(40);
  const [lost, ...others] = list;
  const fewer = waysOf(others);
  for (const [n, session] of names.entries()) {
    if (proxies[n] !== lost) expect(choose(fewer, { session })?.proxy).toBe(proxies[n]);
  }
});

test('retries of a URL begin with another proxy each time, in any process', () => {
  const list = urls(7);
  const rid = 'rid';
  const proxies = list.map((_, retry) => choose(waysOf(list), { rid, retry })?.proxy);
  expect(new Set(proxies).size).toBe(7);
});

test('no crawl is given a proxy in its cool-down but the one try after it, whatever happens', () => {
  const noise = seededNoise('cool-down');
  const clock = createFrozenClock();
  const ways = waysOf(urls(20), clock);
  /** As this test knows them, from what it has told. */
  const opensAt = new Map<string, number>();
  const running: { proxy: string; startedAt: number; end(): void }[] = [];
  let tries = 0;
  for (let step = 0; step < 5_000; step += 1) {
    clock.advance(noise.int(400));
    const now = clock.now().getTime();
    const way = choose(ways);
    if (way?.proxy !== undefined) {
      const { proxy } = way;
      const closedUntil = opensAt.get(proxy);
      expect(closedUntil ?? 0, `step ${step}`).toBeLessThanOrEqual(now);
      // A proxy whose cool-down is over has one crawl at a time, until it has answered.
      if (closedUntil !== undefined) {
        const others = running.filter(
          (each) => each.proxy === proxy && each.startedAt >= closedUntil,
        );
        expect(others).toEqual([]);
        tries += 1;
      }
      const fails = noise.int(3) === 0;
      running.push({
        proxy,
        startedAt: now,
        end() {
          way.end(result(fails ? 'proxy_failed' : undefined, fails ? 0 : 200));
          const at = clock.now().getTime();
          if (!fails) opensAt.delete(proxy);
          // What started before the cool-down tells nothing new; five seconds are the shortest.
          else if (now > (opensAt.get(proxy) ?? 0) - 5_000) opensAt.set(proxy, at + 5_000);
        },
      });
    }
    while (running.length > 8) running.splice(noise.int(running.length), 1)[0]?.end();
  }
  expect(tries).toBeGreaterThan(20);
});

test('a site that answers some proxies only takes them from its own account alone', () => {
  const clock = createFrozenClock();
  const ways = waysOf(urls(2), clock);
  const first = choose(ways);
  first?.end(result(undefined, 200));
  // The host has answered through the first, so the silence of the second is its own.
  let second = choose(ways);
  while (second?.proxy === first?.proxy) second = choose(ways);
  second?.end(result('timeout', 0));
  const given = (account: string) =>
    new Set(Array.from({ length: 50 }, () => choose(ways, { account })?.proxy));
  expect(given('a')).toEqual(new Set([first?.proxy]));
  expect(given('b').size).toBe(2);
});

test('a host that is silent to everyone is not the fault of a proxy, three hosts are', () => {
  const clock = createFrozenClock();
  const ways = waysOf(urls(1), clock);
  const mayCrawl = (): boolean => {
    const way = choose(ways);
    way?.end(undefined);
    return way !== undefined;
  };
  for (let n = 0; n < 10; n += 1) choose(ways, { host: 'dead.test' })?.end(result('timeout', 0));
  expect(mayCrawl()).toBe(true);
  for (const host of ['b.test', 'c.test']) choose(ways, { host })?.end(result('timeout', 0));
  expect(mayCrawl()).toBe(false);
  clock.advance(5_001);
  expect(mayCrawl()).toBe(true);
});

test('a URL that has failed is not the try of a proxy that has, while others may be used', () => {
  const clock = createFrozenClock();
  const ways = waysOf(urls(6), clock);
  const bad = new Set<string | undefined>();
  while (bad.size < 3) {
    const way = choose(ways);
    bad.add(way?.proxy);
    way?.end(result('proxy_failed', 0));
  }
  clock.advance(60_000);
  for (let n = 0; n < 50; n += 1) {
    const way = choose(ways, { retry: 1 });
    expect(bad).not.toContain(way?.proxy);
    way?.end(result(undefined, 200));
  }
  // One crawl in twenty may be such a try, and each rid begins anywhere in the list, so this takes many.
  const first = Array.from({ length: 300 }, () => choose(ways)?.proxy);
  expect(first.filter((proxy) => bad.has(proxy)).length).toBe(3);
});

test('a proxy that has not answered yet gets one crawl, while others have none', () => {
  const ways = waysOf(urls(20));
  const first = Array.from({ length: 20 }, () => choose(ways));
  expect(new Set(first.map((way) => way?.proxy)).size).toBe(20);
  // There is no other left.
  const second = Array.from({ length: 20 }, () => choose(ways));
  expect(second).not.toContain(undefined);
});

test('a proxy that is silent for seconds gets no further crawl, while others answer', () => {
  const clock = createFrozenClock();
  const ways = waysOf(urls(5), clock);
  const first = Array.from({ length: 5 }, () => choose(ways));
  for (const way of first) way?.end(result(undefined, 200));
  const dead = first[0]?.proxy;
  const waiting = [];
  for (let n = 0; n < 200; n += 1) {
    const way = choose(ways);
    if (way?.proxy === dead) waiting.push(way);
    else way?.end(result(undefined, 200));
    clock.advance(100);
  }
  // It has had some within the first two seconds.
  expect(waiting.length).toBeGreaterThan(0);
  expect(waiting.length).toBeLessThan(21);
  waiting[0]?.end(result(undefined, 200));
  clock.advance(1_000);
  const later = Array.from({ length: 50 }, () => choose(ways)?.proxy);
  expect(later).toContain(dead);
});

test('of many crawls at once a few are tries of proxies that have failed, and all if need be', () => {
  const clock = createFrozenClock();
  const ways = waysOf(urls(100), clock);
  const bad = new Set<string | undefined>();
  while (bad.size < 50) {
    const way = choose(ways);
    const isBad = bad.size < 50;
    if (isBad) bad.add(way?.proxy);
    way?.end(isBad ? result('proxy_failed', 0) : result(undefined, 200));
  }
  clock.advance(60_000);
  const running = Array.from({ length: 60 }, () => choose(ways)?.proxy);
  const tries = running.filter((proxy) => bad.has(proxy)).length;
  expect(tries).toBeGreaterThan(0);
  // The good ones have one each by then.
  expect(tries).toBeLessThan(13);
});
