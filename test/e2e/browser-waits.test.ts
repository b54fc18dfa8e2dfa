import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { isLong } from '../support/length.ts';
import { type Site, startSite } from '../support/site.ts';

// Another crawl, whose wait is known and which ends later, tells how long a crawl waits.

const routes = {
  '/polls': htmlRoute(
    'ready<script>setInterval(() => fetch("/page/1?" + Math.random()), 50)</script>',
  ),
  '/long-poll': htmlRoute(
    'ready<script>fetch("http://localhost:" + location.port + "/hang")</script>',
  ),
  '/stream': htmlRoute(
    'ready<script>new EventSource("/hang"); new WebSocket("ws://" + location.host + "/hang")</script>',
  ),
  '/chain': htmlRoute(
    '<p id="out"></p><script>(async () => { for (let n = 0; n < 4; n++) await fetch("/delay/150?" + n); out.textContent = "whole chain"; })()</script>',
  ),
  '/short': htmlRoute('<p>short page</p>'),
  '/late-font': htmlRoute(
    '<style>@font-face { font-family: late; src: url(/hang) } p { font-family: late }</style><p>text',
  ),
  '/straggler': htmlRoute('ready<img src="/hang">'),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({
    env: { NETWORK_ALLOW: `${site.host},localhost:${site.port}`, BROWSER_PAGES: '8' },
  });
  await crawl('/short');
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, site.url + path, parameters);

/** Which of the crawls end before one that waits for `ms`. */
async function endBefore(
  ms: number,
  crawls: readonly (readonly [string, Record<string, string>])[],
): Promise<string[]> {
  const ended: string[] = [];
  const all = crawls.map(async ([path, parameters]) => {
    const result = await crawl(path, parameters);
    expect(result).toMatchObject({ cb_status: 200 });
    ended.push(path);
  });
  await crawl('/short', { page_wait: String(ms) });
  const inTime = [...ended];
  await Promise.all(all);
  return inTime.toSorted();
}

test('nobody waits for polls, streams, what other sites are slow with, or the end of a short page', async () => {
  const ended = await endBefore(8_000, [
    ['/polls', { ajax_wait: 'true' }],
    ['/long-poll', { ajax_wait: 'true' }],
    ['/stream', { ajax_wait: 'true' }],
    ['/short', { scroll: 'true' }],
  ]);
  expect(ended).toEqual(['/long-poll', '/polls', '/short', '/stream']);
});

test('ajax_wait waits for requests that follow each other', async () => {
  expect((await crawl('/chain', { ajax_wait: 'true' })).body).toContain('whole chain');
});

test.runIf(isLong)('a font that never comes holds a picture for 15 s', async () => {
  expect(await endBefore(22_000, [['/late-font', { screenshot: 'true' }]])).toEqual(['/late-font']);
});

test.runIf(isLong)('an image that never comes holds a page for seconds, once', async () => {
  expect(await endBefore(20_000, [['/straggler', { ajax_wait: 'true' }]])).toEqual(['/straggler']);
});
