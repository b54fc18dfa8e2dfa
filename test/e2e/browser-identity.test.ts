import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import { startProxy } from '../support/proxy.ts';
import { type Site, startSite } from '../support/site.ts';

// What a site is told of the browser, by headers and to scripts, agrees.

const SCRIPT = `(async () => {
  // A process that has just been started learns of its window a little later.
  while (outerWidth === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const data = navigator.userAgentData;
  const high = await data?.getHighEntropyValues(['platformVersion', 'model', 'uaFullVersion', 'fullVersionList', 'architecture']);
  return {
    userAgent: navigator.userAgent, platform: navigator.platform, languages: navigator.languages,
    webdriver: navigator.webdriver, brands: data?.brands, mobile: data?.mobile, hintPlatform: data?.platform, high,
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone, number: (1234.5).toLocaleString(),
    touch: navigator.maxTouchPoints, screen: [screen.width, screen.height], window: [outerWidth, outerHeight],
    orientation: screen.orientation.type, hover: matchMedia('(hover: hover)').matches,
    pointer: ['fine', 'coarse', 'none'].find((kind) => matchMedia('(pointer: ' + kind + ')').matches),
  };
})()`;

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/who': (request, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        // Without this tag, the script may end before the parser has made a body.
        response.end(`<!doctype html><body><script type="application/json" id="headers">${JSON.stringify(request.headers)}</script>
          <script type="application/json" id="scripts"></script><script src="/page/1" async></script>
          <script>const done = document.createElement('p'); done.id = 'done'; done.textContent = 'done'; const held = fetch('/delay/1'); ${SCRIPT}.then((all) => { scripts.textContent = JSON.stringify(all); document.body.append(done); });</script>`);
      },
    },
  });
  app = await startApp({ env: { NETWORK_ALLOW: site.host } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

async function who(parameters: Record<string, string> = {}, own: TestApp = app) {
  const result = await crawlInBrowser(own, `${site.url}/who`, {
    wait_for_selector: '#done',
    ...parameters,
  });
  expect(result, result.body).toMatchObject({ cb_status: 200 });
  const part = (id: string) =>
    JSON.parse(new RegExp(`id="${id}">([^<]*)<`).exec(result.body)?.[1] ?? '{}');
  return { headers: part('headers'), scripts: part('scripts') };
}

describe('headers and scripts agree', () => {
  test.each([
    ['desktop', 'Linux', 'Linux x86_64', false, '', 'X11; Linux'],
    ['mobile', 'Android', 'Linux armv81', true, 'Pixel 9', 'Android 15'],
    ['tablet', 'Android', 'Linux armv81', false, 'Pixel Tablet', 'Android 15'],
  ])('%s', async (device, hint, platform, mobile, model, system) => {
    const { headers, scripts } = await who({ device });
    const [, major] = /Chrome\/(\d+)/.exec(headers['user-agent']) ?? [];
    expect(headers['user-agent']).toContain(system);
    expect(headers['user-agent']).toContain('QueuedCrawler');
    expect(scripts).toMatchObject({ userAgent: headers['user-agent'], platform, mobile });
    expect(scripts.hintPlatform).toBe(hint);
    expect(scripts.high.model).toBe(model);
    expect(scripts.brands).toContainEqual({ brand: 'Chromium', version: major });
    expect(JSON.stringify([scripts, headers])).not.toContain('Headless');
    expect(scripts.high.fullVersionList).toContainEqual({
      brand: 'Chromium',
      version: scripts.high.uaFullVersion || expect.stringContaining(`${major}.`),
    });
    expect(headers['sec-ch-ua-platform']).toBe(`"${hint}"`);
    expect(headers['sec-ch-ua-mobile']).toBe(mobile ? '?1' : '?0');
    expect(headers['sec-ch-ua']).toContain(`"Chromium";v="${major}"`);
  });

  test.each([
    [{}, [1_366, 768], 'landscape-primary', 'fine'],
    [{ width: '1920', height: '1080' }, [1_920, 1_080], 'landscape-primary', 'fine'],
    [{ device: 'mobile' }, [412, 915], 'portrait-primary', 'coarse'],
    [{ device: 'tablet' }, [1_024, 1_366], 'portrait-primary', 'coarse'],
  ])(
    'of the screen with %j',
    async (parameters: Record<string, string>, size, orientation, pointer) => {
      const { scripts } = await who(parameters);
      expect(scripts).toMatchObject({ screen: size, window: size, orientation, pointer });
      expect([scripts.hover, scripts.touch]).toEqual(pointer === 'fine' ? [true, 0] : [false, 5]);
    },
  );

  test('also with a user agent of another browser or system', async () => {
    const windows =
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36';
    const one = await who({ user_agent: windows });
    expect(one.scripts).toMatchObject({
      userAgent: windows,
      platform: 'Win32',
      hintPlatform: 'Windows',
    });
    expect(one.headers['sec-ch-ua']).toContain('"Chromium";v="150"');
    const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
    const other = await who({ user_agent: firefox });
    expect(Object.keys(other.headers).filter((name) => name.startsWith('sec-ch-'))).toEqual([]);
    expect(JSON.stringify(other.scripts)).not.toContain('Chrom');
  });
});

test('language, numbers and time zone follow country, and locale and timezone rule', async () => {
  expect((await who()).scripts.languages).toEqual(['en-US', 'en']);
  await using proxy = await startProxy({ target: site.host });
  await using abroad = await startApp({
    env: { NETWORK_ALLOW: site.host, PROXIES: JSON.stringify({ DE: proxy.url, US: proxy.url }) },
  });
  const german = await who({ country: 'DE' }, abroad);
  expect(german.scripts).toMatchObject({
    languages: ['de-DE', 'de'],
    zone: 'Europe/Berlin',
    number: '1.234,5',
  });
  expect(german.headers['accept-language']).toBe('de-DE,de;q=0.9');
  expect((await who({ country: 'US' }, abroad)).scripts.zone).toBe('America/New_York');
  const other = await who({ locale: 'fr-CA', timezone: 'America/Toronto' });
  expect(other.scripts).toMatchObject({ languages: ['fr-CA', 'fr'], zone: 'America/Toronto' });
  for (const [name, value] of [
    ['locale', '?'],
    ['timezone', 'Nowhere/Else'],
  ] as const) {
    expect(await crawlInBrowser(app, site.url, { [name]: value })).toMatchObject({ field: name });
  }
});

test('the operator decides whether the service is named', async () => {
  const named = await who();
  expect(named.scripts.webdriver).toBe(true);
  await using own = await startApp({
    env: { NETWORK_ALLOW: site.host, CRAWLER_IDENTITY: 'visitor' },
  });
  const { headers, scripts } = await who({}, own);
  expect(headers['user-agent']).toBe(
    named.headers['user-agent'].replace('; compatible; QueuedCrawler/1.0', ''),
  );
  expect(scripts).toMatchObject({ webdriver: false, userAgent: headers['user-agent'] });
});
