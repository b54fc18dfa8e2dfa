import { expect, test } from 'vitest';
import type { Clock } from '../../../src/domain/clock.ts';
import { createRobotsGate } from '../../../src/engine/politeness/robots-gate.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { httpError } from '../../../src/net/http-failures.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { startSite } from '../../support/site.ts';
import { createTestClock } from '../../support/test-clock.ts';

const TASK = { crawlerId: 'c', accountId: 'a' };
const { signal } = new AbortController();

function startGate(allow: string, clock: Clock = createTestClock()) {
  const client = createHttpClient({ allow: parseNetworkAllow(allow) });
  const gate = createRobotsGate({ client, clock });
  return {
    check: (url: string) => gate.check(TASK, new URL(url), { proxy: undefined, name: '' }, signal),
    [Symbol.asyncDispose]: () => client.close(),
  };
}

test('robots.txt is read once, kept to, and tells its crawl-delay', async () => {
  await using site = await startSite({
    robotsTxt:
      'User-agent: *\nDisallow: /\n\nUser-agent: QueuedCrawler\nDisallow: /status/\nAllow: /status/404\nCrawl-delay: 20\n',
  });
  await using gate = startGate(site.host);
  expect(await gate.check(`${site.url}/status/200`)).toEqual({ refused: 'robots_disallowed' });
  expect(await gate.check(`${site.url}/status/404`)).toEqual({ delayMs: 20_000 });
  expect(await gate.check(`${site.url}/page/1`)).toEqual({ delayMs: 20_000 });
  expect(site.hits('/robots.txt')).toBe(1);
  expect(site.hits()).toBe(1);
});

test('a robots.txt that is not there allows everything', async () => {
  await using site = await startSite();
  await using gate = startGate(site.host);
  expect(await gate.check(`${site.url}/page/1`)).toEqual({ delayMs: 0 });
});

test('a robots.txt that this process had no socket for is asked for again', async () => {
  await using site = await startSite();
  const real = createHttpClient({ allow: parseNetworkAllow(site.host) });
  await using stack = new AsyncDisposableStack();
  stack.defer(() => real.close());
  let failing = true;
  const gate = createRobotsGate({
    client: {
      request: (request) =>
        failing ? Promise.reject(httpError('no_socket')) : real.request(request),
    },
    clock: createTestClock(),
  });
  const route = { proxy: undefined, name: '' };
  const check = () => gate.check(TASK, new URL(`${site.url}/page/1`), route, signal);
  expect(await check()).toEqual({ refused: 'no_socket' });
  failing = false;
  expect(await check()).toEqual({ delayMs: 0 });
});

test('a site whose name does not exist has that reason, with robots.txt, too', async () => {
  const gate = createRobotsGate({
    client: { request: () => Promise.reject(httpError('name_not_found')) },
    clock: createTestClock(),
  });
  const url = new URL('http://no.test/');
  const end = await gate.check(TASK, url, { proxy: undefined, name: '' }, signal);
  expect(end).toEqual({ refused: 'name_not_found' });
});

test('a robots.txt that fails is read again after a minute', async () => {
  const clock = createTestClock();
  let broken = true;
  await using site = await startSite({
    routes: {
      '/robots.txt': (_request, response) => {
        response.writeHead(broken ? 500 : 404).end();
      },
    },
  });
  await using gate = startGate(site.host, clock);
  expect(await gate.check(`${site.url}/page/1`)).toEqual({ refused: 'robots_unreachable' });
  broken = false;
  clock.advance(61_000);
  expect(await gate.check(`${site.url}/page/1`)).toEqual({ delayMs: 0 });
});
