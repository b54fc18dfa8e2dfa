import { expect, test } from 'vitest';
import { parseProxies } from '../../../src/config/parse-proxies.ts';
import type { CrawlTask } from '../../../src/engine/engine.ts';
import type { RobotsGate } from '../../../src/engine/politeness/robots-gate.ts';
import { createCrawling } from '../../../src/service/crawls/crawling.ts';
import { createWaysOut } from '../../../src/service/crawls/ways-out.ts';
import type { CrawlOrder } from '../../../src/threads/crawl-threads.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createTestClock } from '../../support/test-clock.ts';

const clock = createTestClock();

const TASK: CrawlTask = {
  request: {
    url: 'http://site.test/page',
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
  },
  tokenType: 'normal',
  accountId: 'a',
  crawlerId: 'c',
  politeness: { maxPerHost: 1, delayMs: 0, robotsTxt: true },
};

/** A polite crawl with these parameters: which proxy its robots.txt is read through, and its result. */
async function crawlPolitely(
  parameters: CrawlTask['request']['parameters'],
  proxies: Readonly<Record<string, string>>,
) {
  const asked: (string | undefined)[] = [];
  const robots: RobotsGate = {
    async check(_task, _url, { proxy }) {
      asked.push(proxy);
      return { refused: 'robots_disallowed' };
    },
  };
  const pools = parseProxies(JSON.stringify(proxies));
  const crawling = createCrawling({
    threads: { crawl: () => Promise.reject(new Error('crawled')) } as never,
    browser: undefined as never,
    screenshots: undefined as never,
    sessions: undefined as never,
    robots,
    waysOut: createWaysOut({ pools, clock, logger: silentLogger }),
    usablePools: { of: async () => pools },
    clock,
    publicUrl: () => '',
  });
  const order: CrawlOrder = {
    task: { ...TASK, request: { ...TASK.request, parameters } },
    spec: { webhook: undefined } as never,
    isSuspect: false,
  };
  const { result } = await crawling.crawl(order, new AbortController().signal);
  return { asked, reason: result.failure?.reason };
}

const PROXIES = { DE: 'http://de.proxy:1', FR: 'direct', '*': 'http://any.proxy:1' };

test.each([
  [{}, undefined],
  [{ country: 'DE' }, 'http://de.proxy:1/'],
  // The operator's choice for every other country, and for none.
  [{ country: 'ES' }, 'http://any.proxy:1/'],
  [{ country: 'FR' }, undefined],
] as const)('robots.txt of a crawl with %j is read through %s', async (parameters, proxy) => {
  const { asked } = await crawlPolitely(parameters, PROXIES);
  expect(asked).toEqual([proxy]);
});

test.each([[{ country: 'DE' }], [{ tor_network: true }]])(
  'robots.txt is not read at all when the proxy of %j is missing',
  async (parameters) => {
    const { asked, reason } = await crawlPolitely(parameters, {});
    expect([asked, reason]).toEqual([[], 'proxy_not_configured']);
  },
);
