import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startTlsSite } from '../support/tls-site.ts';

// What a client gives for a site is for that site: its origin, whatever leads away from it.

const GIVEN =
  'authorization:Bearer SECRET|x-api-key:SECRET|cookie:key=SECRET|referer:http://from.example/SECRET|accept-language:de';

let app: TestApp;
let site: Site;
let other: Site;

beforeAll(async () => {
  other = await startSite({
    routes: {
      '/who': htmlRoute('<script>document.write("cookies " + document.cookie);</script>'),
      '/tells': htmlRoute(
        '<script>parent.postMessage("cookies " + document.cookie, "*");</script>',
      ),
    },
  });
  site = await startSite({
    routes: {
      '/mixed': (request, response, url) =>
        htmlRoute(
          `<img src="/echo?own"><img src="${other.url}/echo?image"><script>fetch('${other.url}/echo?fetch', { mode: 'no-cors' })</script>`,
        )(request, response, url),
      '/image': (_request, response) => {
        response.writeHead(302, { location: `${other.url}/echo?redirected` }).end();
      },
      '/framing': (request, response, url) =>
        htmlRoute(`<button id="load">load</button><script>
          load.onclick = async () => {
            const frame = (origin, path) => new Promise((resolve) => {
              document.body.append(Object.assign(document.createElement('iframe'), { src: origin + path, onload: resolve }));
            });
            onmessage = ({ data }) => fetch('/told?' + data, { credentials: 'omit' });
            for (const origin of ['', '${other.url}']) {
              await frame(origin, '/echo?frame');
              await new Promise((resolve) => { Object.assign(new Image(), { onload: resolve, onerror: resolve, src: origin + '/echo?image' }); });
              await fetch(origin + '/echo?fetch', { credentials: 'include', mode: 'no-cors' });
            }
            await frame('${other.url}', '/tells');
          };
        </script>`)(request, response, url),
      '/with-image': htmlRoute('<img src="/image">'),
      '/who': htmlRoute('<script>document.write("cookies " + document.cookie);</script>'),
    },
  });
  app = await startApp({ env: { NETWORK_ALLOW: `${site.host},${other.host}` } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

const secretsAt = (seen: Site): string[] =>
  seen.seen
    .filter((each) => JSON.stringify(each.headers).includes('SECRET'))
    .map(({ path }) => path);

test('headers given reach the site, those that a browser sets itself among them', async () => {
  const { body } = await crawlInBrowser(app, `${site.url}/echo`, {
    request_headers: `${GIVEN}|origin:http://own.example|accept-encoding:identity`,
    set_cookies: 'a=1',
  });
  expect(JSON.parse(body).headers).toMatchObject({
    authorization: 'Bearer SECRET',
    'x-api-key': 'SECRET',
    referer: 'http://from.example/SECRET',
    'accept-language': 'de',
    origin: 'http://own.example',
    'accept-encoding': 'identity',
    cookie: 'key=SECRET; a=1',
  });
});

test('headers given stay at the first origin when the site redirects', async () => {
  other.reset();
  const to = encodeURIComponent(`${other.url}/echo?document`);
  const { body } = await crawlInBrowser(app, `${site.url}/redirect-to?url=${to}`, {
    request_headers: GIVEN,
  });
  expect(secretsAt(other)).toEqual([]);
  expect(body).not.toContain('SECRET');
  // It is no secret, and the page is read in it.
  expect(JSON.parse(body).headers['accept-language']).toBe('de');
  expect(secretsAt(site)).toContain(`/redirect-to?url=${to}`);
});

test('headers given reach what the page loads from its own site, nothing else', async () => {
  other.reset();
  site.reset();
  await crawlInBrowser(app, `${site.url}/mixed`, { request_headers: GIVEN, ajax_wait: 'true' });
  await crawlInBrowser(app, `${site.url}/with-image`, {
    request_headers: GIVEN,
    ajax_wait: 'true',
  });
  const asked = ['/echo?fetch', '/echo?image', '/echo?redirected'];
  expect(
    other.seen
      .map(({ path }) => path)
      .filter((path) => asked.includes(path))
      .toSorted(),
  ).toEqual(asked);
  expect(secretsAt(other)).toEqual([]);
  expect(secretsAt(site)).toEqual(expect.arrayContaining(['/mixed', '/echo?own', '/image']));
});

test.each([301, 302, 303, 307, 308])(
  'cookies given stay at the first origin when it redirects with %i to another port',
  async (status) => {
    other.reset();
    const to = encodeURIComponent(`${other.url}/who`);
    const result = await crawlInBrowser(app, `${site.url}/redirect-to?url=${to}&status=${status}`, {
      set_cookies: 'key=SECRET',
    });
    expect(result).toMatchObject({ cb_status: 200, url: `${other.url}/who` });
    expect(result.body).not.toContain('SECRET');
    expect(other.hits('/who')).toBe(1);
    expect(secretsAt(other)).toEqual([]);
  },
);

test('cookies given reach what the page loads from its own origin, nothing else', async () => {
  other.reset();
  site.reset();
  await crawlInBrowser(app, `${site.url}/framing`, {
    set_cookies: 'key=SECRET; more=SECRET',
    css_click_selector: '#load',
  });
  expect(other.hits()).toBe(4);
  expect(secretsAt(other)).toEqual([]);
  expect(secretsAt(site)).toEqual(['/framing', '/echo?frame', '/echo?image', '/echo?fetch']);
  expect(site.hits('/told')).toBe(1);
  expect(site.seen.find(({ path }) => path.startsWith('/told'))?.path).toBe('/told?cookies');
});

test('cookies given stay at their origin in the crawls of a session', async () => {
  const session = { cookies_session: 'given' };
  const given = { ...session, set_cookies: 'key=SECRET' };
  await crawlInBrowser(app, `${site.url}/cookies/set?own=1`, given);
  expect((await crawlInBrowser(app, `${other.url}/who`, session)).body).toContain('cookies own=1<');
  const { body } = await crawlInBrowser(app, `${site.url}/who`, session);
  expect(body).toMatch(/cookies (own=1; key=SECRET|key=SECRET; own=1)/);
});

test('the same holds for https', async () => {
  await using secure = await startTlsSite();
  await using folder = await temporaryFolder();
  const wrapper = join(folder.path, 'chromium');
  // Nobody vouches for the site's certificate.
  const real = await findChromium('');
  await writeFile(wrapper, `#!/bin/sh\nexec ${real} --ignore-certificate-errors "$@"\n`, {
    mode: 0o700,
  });
  const leading = await startSite();
  await using lead = leading;
  await using own = await startApp({
    env: { NETWORK_ALLOW: `${lead.host},${secure.host}`, CHROMIUM_PATH: wrapper },
  });
  const direct = await crawlInBrowser(own, `${secure.url}/`, { request_headers: GIVEN });
  expect(JSON.parse(direct.body).headers).toMatchObject({
    authorization: 'Bearer SECRET',
    'x-api-key': 'SECRET',
    cookie: 'key=SECRET',
  });
  const to = encodeURIComponent(`${secure.url}/`);
  const led = await crawlInBrowser(own, `${lead.url}/redirect-to?url=${to}`, {
    request_headers: GIVEN,
  });
  expect(JSON.parse(led.body).headers[':authority']).toBe(secure.host);
  expect(led.body).not.toContain('SECRET');
});

test('a cookie that no browser takes is left out, and does not fail the crawl', async () => {
  const cookies = `__Host-x=1; ok=2; __Secure-y=1; long=${'v'.repeat(5_000)}; last=3`;
  const { cb_status: status, body } = await crawlInBrowser(app, `${site.url}/who`, {
    set_cookies: cookies,
  });
  expect(status).toBe(200);
  expect(body).toContain('cookies ok=2; last=3');
});

test('crawls of one session at the same time keep all their cookies, and downloads have them', async () => {
  const session = { cookies_session: 'shared' };
  await Promise.all(
    ['a', 'b', 'c'].map((name) =>
      crawlInBrowser(app, `${site.url}/cookies/set?${name}=1`, { ...session, page_wait: '500' }),
    ),
  );
  const { body } = await crawlInBrowser(app, `${site.url}/who`, session);
  for (const cookie of ['a=1', 'b=1', 'c=1']) expect(body).toContain(cookie);
  const download = await crawlInBrowser(app, `${site.url}/echo`, session);
  expect(JSON.parse(download.body).headers.cookie).toContain('b=1');
});
