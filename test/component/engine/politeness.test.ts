import { describe, expect, test } from 'vitest';
import { parseRetryAfter } from '../../../src/domain/retry-after.ts';
import { createHostLimiter, HOST_BUSY } from '../../../src/engine/politeness/host-limiter.ts';
import { startHttpEngine } from '../../support/http-engine.ts';
import { startSite } from '../../support/site.ts';
import { createTestClock } from '../../support/test-clock.ts';

const OFF = { maxPerHost: 0, delayMs: 0, robotsTxt: false };
const KEY = { crawlerId: 'c', accountId: 'a', host: 'h' };
const { signal } = new AbortController();

describe('requests at one host', () => {
  test('are never more than allowed at once, and other hosts do not wait', async () => {
    await using site = await startSite();
    await using other = await startSite();
    await using engine = startHttpEngine({ allow: '127.0.0.1' });
    const politeness = { ...OFF, maxPerHost: 2 };
    const slow = Array.from({ length: 6 }, () =>
      engine.crawl(`${site.url}/delay/150`, {}, { politeness }),
    );
    let ended = 0;
    for (const each of slow) void each.then(() => (ended += 1));
    const elsewhere = await engine.crawl(`${other.url}/page/1`, {}, { politeness });
    expect([elsewhere.cbStatus, ended < 6]).toEqual([200, true]);
    expect((await Promise.all(slow)).map(({ cbStatus }) => cbStatus)).toEqual(Array(6).fill(200));
    expect(site.maxConcurrent).toBe(2);
  });

  test('start no closer than the delay', async () => {
    await using site = await startSite();
    await using engine = startHttpEngine({ allow: '127.0.0.1' });
    const politeness = { ...OFF, delayMs: 60 };
    const startedAt = Date.now();
    await Promise.all(
      Array.from({ length: 4 }, () => engine.crawl(`${site.url}/page/1`, {}, { politeness })),
    );
    // The requests' ways take their own time, so only the last start says something for sure.
    expect((site.seen.at(-1)?.at.getTime() ?? 0) - startedAt).toBeGreaterThanOrEqual(3 * 60);
  });

  test('whose turn is far off are given back, each for a later moment', async () => {
    await using site = await startSite();
    await using engine = startHttpEngine({ allow: '127.0.0.1' });
    // Far more than a busy machine adds.
    const delayMs = 120_000;
    const crawl = () => engine.crawl(`${site.url}/page/1`, {}, { politeness: { ...OFF, delayMs } });
    expect((await crawl()).cbStatus).toBe(200);
    const startedAt = performance.now();
    const waits: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const { cbStatus, failure } = await crawl();
      expect(failure).toMatchObject({ reason: HOST_BUSY, transient: true });
      expect(cbStatus).toBe(599);
      waits.push(Math.round((failure?.retryAfterMs ?? 0) / delayMs));
    }
    expect(waits).toEqual([1, 2, 3]);
    expect(performance.now() - startedAt).toBeLessThan(delayMs / 2);
    expect(site.hits()).toBe(1);
  });

  test('wait as long as a 429 asks for, and only there', async () => {
    await using site = await startSite();
    await using other = await startSite();
    await using engine = startHttpEngine({ allow: '127.0.0.1' });
    const politeness = { ...OFF, maxPerHost: 5 };
    const refused = await engine.crawl(`${site.url}/status/429?retry-after=30`, {}, { politeness });
    expect(refused.failure?.retryAfterMs).toBe(30_000);
    const next = await engine.crawl(`${site.url}/page/1`, {}, { politeness });
    expect(next.failure?.reason).toBe(HOST_BUSY);
    expect(next.failure?.retryAfterMs).toBeGreaterThan(29_000);
    expect((await engine.crawl(`${other.url}/page/1`, {}, { politeness })).cbStatus).toBe(200);
    // Another crawler, and one without politeness, have queues of their own.
    const elsewhere = { politeness, crawlerId: 'other' };
    expect((await engine.crawl(`${site.url}/page/1`, {}, elsewhere)).cbStatus).toBe(200);
    expect((await engine.crawl(`${site.url}/page/1`)).cbStatus).toBe(200);
  });
});

describe('the gate', () => {
  test('frees a place when a request ends or is aborted while it waits', async () => {
    const limiter = createHostLimiter({ clock: createTestClock() });
    const pace = { maxPerHost: 1, delayMs: 0 };
    const first = await limiter.acquire(KEY, pace, signal);
    if (!first.admitted) throw new Error('refused');
    const controller = new AbortController();
    const aborted = expect(limiter.acquire(KEY, pace, controller.signal)).rejects.toThrow('enough');
    const second = limiter.acquire(KEY, pace, signal);
    controller.abort(new Error('enough'));
    await aborted;
    first.release();
    first.release();
    expect((await second).admitted).toBe(true);
    // Leaving twice has not made a second place.
    const third = limiter.acquire(KEY, pace, AbortSignal.timeout(50));
    await expect(third).rejects.toThrow();
  });

  test('is open again when the delay is over', async () => {
    const clock = createTestClock();
    const limiter = createHostLimiter({ clock });
    const pace = { maxPerHost: 0, delayMs: 60_000 };
    expect((await limiter.acquire(KEY, pace, signal)).admitted).toBe(true);
    expect((await limiter.acquire(KEY, pace, signal)).admitted).toBe(false);
    clock.advance(60_000);
    expect((await limiter.acquire(KEY, pace, signal)).admitted).toBe(true);
  });
});

describe('robots.txt', () => {
  const politeness = { ...OFF, robotsTxt: true };

  test('is asked once, kept to, and its crawl-delay counts', async () => {
    await using site = await startSite({
      robotsTxt:
        'User-agent: *\nDisallow: /\n\nUser-agent: QueuedCrawler\nDisallow: /status/\nAllow: /status/404\nCrawl-delay: 20\n',
    });
    await using engine = startHttpEngine({ allow: site.host });
    const disallowed = await engine.crawl(`${site.url}/status/200`, {}, { politeness });
    expect(disallowed).toMatchObject({
      cbStatus: 523,
      originalStatus: 0,
      failure: { reason: 'robots_disallowed', transient: false },
    });
    expect((await engine.crawl(`${site.url}/status/404`, {}, { politeness })).originalStatus).toBe(
      404,
    );
    const soon = await engine.crawl(`${site.url}/page/1`, {}, { politeness });
    expect(soon.failure?.reason).toBe(HOST_BUSY);
    expect(site.hits('/robots.txt')).toBe(1);
    expect(site.hits()).toBe(2);
  });

  test('that is not there allows everything', async () => {
    await using site = await startSite();
    await using engine = startHttpEngine({ allow: site.host });
    expect((await engine.crawl(`${site.url}/page/1`, {}, { politeness })).cbStatus).toBe(200);
  });

  test('that fails leaves it open, and the crawl is tried again later', async () => {
    const clock = createTestClock();
    let broken = true;
    await using site = await startSite({
      routes: {
        '/robots.txt': (_request, response) => {
          response.writeHead(broken ? 500 : 404).end();
        },
      },
    });
    await using engine = startHttpEngine({ allow: site.host, clock });
    const page = await engine.crawl(`${site.url}/page/1`, {}, { politeness });
    expect(page).toMatchObject({
      cbStatus: 599,
      failure: { reason: 'robots_unreachable', transient: true },
    });
    broken = false;
    clock.advance(61_000);
    expect((await engine.crawl(`${site.url}/page/1`, {}, { politeness })).cbStatus).toBe(200);
  });
});

describe('Retry-After', () => {
  const now = new Date('2026-01-01T00:00:00Z');
  test.each([
    ['120', 120_000],
    ['0', 0],
    [' 5 ', 5_000],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30_000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['999999999', 86_400_000],
    ['-1', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('%j is %j', (value, ms) => {
    expect(parseRetryAfter(value, now)).toBe(ms);
  });
});
