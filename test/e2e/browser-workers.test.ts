import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { bytesRoute, crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { type Site, startSite } from '../support/site.ts';

// Workers of every kind, and frames in processes of their own, say of the browser what their page says.

const WHO = `const who = async () => {
  const { userAgent, appVersion, platform, language, languages, hardwareConcurrency, userAgentData: data } = navigator;
  const high = await data?.getHighEntropyValues(['platformVersion', 'model', 'fullVersionList', 'formFactors', 'architecture']);
  return { userAgent, appVersion, platform, language, languages, hardwareConcurrency, high,
    brands: data?.brands, zone: Intl.DateTimeFormat().resolvedOptions().timeZone, number: (1234.5).toLocaleString() };
};`;
const script = (code: string) => bytesRoute('text/javascript', WHO + code);
const inWorker = (path: string) =>
  `new Promise((resolve) => { new Worker('${path}').onmessage = ({ data }) => resolve(data); })`;

const routes = {
  '/dedicated.js': script(
    `(async () => { await fetch('/from/dedicated'); postMessage({ own: await who(), nested: await ${inWorker('/nested.js')} }); })();`,
  ),
  '/nested.js': script(`who().then((own) => postMessage({ own }));`),
  '/shared.js': script(
    `onconnect = async ({ ports: [port] }) => { await fetch('/from/shared'); port.postMessage({ own: await who() }); };`,
  ),
  '/service.js': script(
    `onmessage = async ({ source }) => { await fetch('/from/service'); source.postMessage({ own: await who() }); };`,
  ),
  '/frame': htmlRoute(
    `<script>${WHO} (async () => parent.postMessage({ own: await who(), nested: await ${inWorker('/nested.js')} }, '*'))();</script>`,
  ),
  '/page':
    htmlRoute(`<script type="application/json" id="all"></script><script>${WHO} (async () => {
    const scopes = { page: { own: await who() } };
    scopes.dedicated = await ${inWorker('/dedicated.js')};
    scopes.shared = await new Promise((resolve) => { new SharedWorker('/shared.js').port.onmessage = ({ data }) => resolve(data); });
    scopes.service = await new Promise(async (resolve) => {
      navigator.serviceWorker.onmessage = ({ data }) => resolve(data);
      navigator.serviceWorker.register('/service.js');
      (await navigator.serviceWorker.ready).active.postMessage('');
    });
    scopes.frame = await new Promise((resolve) => {
      onmessage = ({ data }) => resolve(data);
      document.body.append(Object.assign(document.createElement('iframe'), { src: 'http://localhost:' + location.port + '/frame' }));
    });
    all.textContent = JSON.stringify(scopes);
    document.body.append(Object.assign(document.createElement('p'), { id: 'done' }));
  })();</script>`),
};

interface Scope {
  readonly own: { readonly userAgent: string; readonly languages: readonly string[] };
  readonly nested?: Scope;
}

let named: TestApp;
let visitor: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  const NETWORK_ALLOW = `${site.host},localhost:${site.port}`;
  [named, visitor] = await Promise.all([
    startApp({ env: { NETWORK_ALLOW } }),
    startApp({ env: { NETWORK_ALLOW, CRAWLER_IDENTITY: 'visitor' } }),
  ]);
});

afterAll(async () => {
  await Promise.all([named[Symbol.asyncDispose](), visitor[Symbol.asyncDispose]()]);
  await site[Symbol.asyncDispose]();
});

const WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36';
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

test.each<readonly ['named' | 'visitor', Record<string, string>, string]>([
  ['named', {}, 'Desktop'],
  ['visitor', {}, 'Desktop'],
  ['named', { locale: 'de-DE', timezone: 'Europe/Berlin' }, 'Desktop'],
  ['named', { device: 'mobile' }, 'Mobile'],
  ['visitor', { device: 'tablet', locale: 'fr-FR' }, 'Tablet'],
  ['visitor', { user_agent: WINDOWS }, 'Desktop'],
  ['named', { user_agent: FIREFOX }, ''],
])('%s, with %j', async (identity, parameters, form) => {
  site.reset();
  const result = await crawlInBrowser(identity === 'named' ? named : visitor, `${site.url}/page`, {
    wait_for_selector: '#done',
    ...parameters,
  });
  expect(result).toMatchObject({ cb_status: 200 });
  const scopes = JSON.parse(/id="all">([^<]*)</.exec(result.body)?.[1] ?? '{}') as {
    readonly [name: string]: Scope;
  };
  const { own: page } = scopes.page as Scope;
  expect(page.userAgent.includes('QueuedCrawler')).toBe(
    identity === 'named' && parameters.user_agent === undefined,
  );
  expect(Object.keys(scopes)).toEqual(['page', 'dedicated', 'shared', 'service', 'frame']);
  for (const [name, { own, nested }] of Object.entries(scopes)) {
    expect(own, name).toEqual(page);
    expect(nested?.own ?? page, `nested in ${name}`).toEqual(page);
  }
  expect(JSON.stringify(page)).toContain(form === '' ? 'Firefox' : `"formFactors":["${form}"]`);
  expect(JSON.stringify([scopes, site.seen])).not.toContain('Headless');
  const [first] = site.seen;
  const sent = site.seen.map(({ path, headers }) => [
    path,
    headers['user-agent'],
    headers['accept-language'],
  ]);
  for (const path of [
    '/dedicated.js',
    '/from/dedicated',
    '/shared.js',
    '/from/shared',
    '/from/service',
    '/frame',
  ]) {
    expect(sent).toContainEqual([path, page.userAgent, first?.headers['accept-language']]);
  }
  // The browser requests two scripts as it was started: those of service workers, and of workers in workers.
  const own = site.seen.find(({ path }) => path === '/service.js')?.headers;
  expect(own?.['accept-language']).toBe('en-US,en;q=0.9');
  expect(String(own?.['user-agent']).includes('QueuedCrawler')).toBe(identity === 'named');
});
