import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser, otherAccount } from '../support/browser-crawls.ts';
import { type Site, type SiteRoute, startSite } from '../support/site.ts';

// Crawls of one crawler use the same page of the browser one after the other. Whatever a web page can write to, the next
// crawl sees nothing of it. Each channel is written and read by one crawl first, so that a channel that this
// browser does not have, or a reader that finds nothing, fails.

interface Channel {
  /** Scripts of the page; both may use `await`. `read` gives a text with `secret`, or any other. */
  readonly write: string;
  readonly read: string;
  /**
   * Whether the page is lent again: what is written is cleared. Else the page is closed, or its
   * cache emptied.
   */
  readonly isLentAgain?: true;
  /** When one document cannot read what it has written. */
  readonly onlyLater?: true;
  /** How the next crawl is addressed. */
  readonly path?: string;
}

const store = (name: string): string => `navigator.storageBuckets.open('${name}')`;

const channels: Readonly<Record<string, Channel>> = {
  cookie: {
    write: `document.cookie = 'a=secret; max-age=1000'`,
    read: 'document.cookie',
    isLentAgain: true,
  },
  'cookie store': {
    write: `await cookieStore.set('a', 'secret')`,
    read: `JSON.stringify(await cookieStore.getAll())`,
    isLentAgain: true,
  },
  'HttpOnly cookie': {
    write: `await fetch('/cookies/set?a=secret')`,
    read: `(await (await fetch('/echo', { method: 'POST' })).text())`,
    isLentAgain: true,
  },
  'cookie of an answer that comes after the page': {
    write: `addEventListener('pagehide', () => { document.cookie = 'b=secret'; fetch('/late-cookie', { method: 'POST', keepalive: true }); });
      fetch('/late-cookie', { method: 'POST', keepalive: true });`,
    read: `(await new Promise((resolve) => setTimeout(() => resolve(document.cookie), 300)))`,
    onlyLater: true,
    isLentAgain: true,
  },
  localStorage: {
    write: `localStorage.a = 'secret'`,
    read: `String(localStorage.a)`,
    isLentAgain: true,
  },
  sessionStorage: {
    write: `sessionStorage.a = 'secret'`,
    read: `String(sessionStorage.a)`,
    isLentAgain: true,
  },
  'storage written while the page goes': {
    write: `addEventListener('pagehide', () => { localStorage.a = sessionStorage.a = 'secret'; });
      setInterval(() => { localStorage.a = sessionStorage.a = 'secret'; }, 0);`,
    read: `(localStorage.a + sessionStorage.a)`,
    onlyLater: true,
    isLentAgain: true,
  },
  IndexedDB: {
    write: `await new Promise((resolve) => { indexedDB.open('secret').onsuccess = resolve; })`,
    read: `JSON.stringify(await indexedDB.databases())`,
    isLentAgain: true,
  },
  'Cache API': {
    write: `await (await caches.open('secret')).put('/a', new Response('b'))`,
    read: `JSON.stringify(await caches.keys())`,
    isLentAgain: true,
  },
  'private file system': {
    write: `await (await navigator.storage.getDirectory()).getDirectoryHandle('secret', { create: true })`,
    read: `(await Array.fromAsync((await navigator.storage.getDirectory()).keys())).join()`,
    isLentAgain: true,
  },
  'temporary file system': {
    write: `await new Promise((resolve, reject) => webkitRequestFileSystem(0, 1000, (fs) => fs.root.getFile('secret', { create: true }, resolve, reject), reject))`,
    read: `(await new Promise((resolve, reject) => webkitRequestFileSystem(0, 1000, (fs) => fs.root.createReader().readEntries((all) => resolve(all.map((each) => each.name).join()), reject), reject)))`,
    isLentAgain: true,
  },
  'storage bucket': {
    write: `await ${store('secret')}`,
    read: `(await navigator.storageBuckets.keys()).join()`,
    isLentAgain: true,
  },
  'IndexedDB of a storage bucket': {
    write: `const b = await ${store('b')}; await new Promise((resolve) => { b.indexedDB.open('secret').onsuccess = resolve; })`,
    read: `JSON.stringify(await (await ${store('b')}).indexedDB.databases())`,
    isLentAgain: true,
  },
  'window name': { write: `window.name = 'secret'`, read: 'window.name', isLentAgain: true },
  history: {
    write: `history.pushState('secret', ''); history.pushState('secret', '')`,
    read: `(history.length > 2 ? 'secret' : JSON.stringify(history.state) + navigation.entries().length)`,
    isLentAgain: true,
  },
  'where the page came from': {
    write: `history.replaceState('', '', '/written?secret')`,
    read: `(location.search + document.referrer + navigation.activation?.from?.url)`,
    isLentAgain: true,
  },
  'global variables and prototypes': {
    write: `globalThis.a = 'secret'; Object.prototype.a = 'secret'; document.querySelector = () => 'secret'`,
    read: `(globalThis.a + ({}).a + document.querySelector('x'))`,
    isLentAgain: true,
  },
  'timers and channels': {
    write: `const c = new BroadcastChannel('c'); setInterval(() => c.postMessage('secret'), 5)`,
    read: `(await new Promise((resolve) => { const c = new BroadcastChannel('c'); c.onmessage = ({ data }) => resolve(data); setTimeout(resolve, 150, 'quiet'); }))`,
    onlyLater: true,
    isLentAgain: true,
  },
  'web lock': {
    write: `navigator.locks.request('secret', () => new Promise(() => {})); await 0`,
    read: `JSON.stringify(await navigator.locks.query())`,
    isLentAgain: true,
  },
  'answer in the cache': {
    write: `await fetch('/number?a')`,
    read: `(await cached('/number?a'))`,
    isLentAgain: true,
  },
  'answer in the cache, of another origin': {
    write: `await fetch(OTHER + '/number?a')`,
    read: `(await cached(OTHER + '/number?a'))`,
  },
  'script in the cache that is for one visitor': {
    write: `await import('/private.js')`,
    read: `(await cached('/private.js'))`,
    isLentAgain: true,
  },
  'redirect in the cache': {
    write: `await fetch('/moved')`,
    read: `(await cached('/moved'))`,
    isLentAgain: true,
  },
  'validator of an answer': {
    write: `await fetch('/validated')`,
    read: `(await (await fetch('/validated')).text())`,
    isLentAgain: true,
  },
  'validator of a script': {
    write: `await load('/validated.js')`,
    read: `(await load('/validated.js'), globalThis.validated)`,
    onlyLater: true,
    isLentAgain: true,
  },
  'name and password': {
    write: `await new Promise((resolve) => { const x = new XMLHttpRequest(); x.open('GET', '/secured', true, 'secret', 'x'); x.onload = resolve; x.send(); })`,
    read: `(await (await fetch('/echo-authorization')).text())`,
  },
  'hints that the site asked for': {
    write: `(await fetch('/page/1'))`,
    read: `(await (await fetch('/hints')).text())`,
    onlyLater: true,
    path: '/accept-ch',
  },
  'service worker': {
    write: `await navigator.serviceWorker.register('/worker.js'); await navigator.serviceWorker.ready`,
    read: `((await navigator.serviceWorker.getRegistrations()).length > 0 ? 'secret' : 'none')`,
  },
  'shared worker': {
    write: `const w = new SharedWorker('/shared.js'); w.port.postMessage('secret'); await new Promise((resolve) => { w.port.onmessage = resolve; })`,
    read: `(await new Promise((resolve) => { const w = new SharedWorker('/shared.js'); w.port.onmessage = ({ data }) => resolve(data); w.port.postMessage(''); }))`,
  },
  'cache of a worker': {
    write: `await new Promise((resolve) => { new Worker('/fetching.js').onmessage = resolve; })`,
    read: `(await cached('/number?worker'))`,
  },
  'another window': {
    write: `const w = window.open('about:blank', 'other'); if (w) w.a = 'secret'; await new Promise((resolve) => setTimeout(resolve, 50))`,
    read: `(window.open('', 'other')?.a ?? 'none')`,
    onlyLater: true,
  },
  'storage of a frame of another site': {
    write: `await frame(OTHER + '/frame?write')`,
    read: `(await frame(OTHER + '/frame?read'))`,
  },
  'memory of textures': {
    write: `const gl = new OffscreenCanvas(64, 64).getContext('webgl'); const bytes = new Uint8Array(512 * 512 * 4).fill(83);
      for (let n = 0; n < 5; n += 1) { gl.bindTexture(gl.TEXTURE_2D, gl.createTexture()); gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 512, 512, 0, gl.RGBA, gl.UNSIGNED_BYTE, bytes); } gl.finish()`,
    read: `((gl) => { const pixels = new Uint8Array(512 * 512 * 4); let seen = 0; gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
      for (let n = 0; n < 5; n += 1) { const texture = gl.createTexture(); gl.bindTexture(gl.TEXTURE_2D, texture); gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 512, 512, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
        gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0); gl.readPixels(0, 0, 512, 512, gl.RGBA, gl.UNSIGNED_BYTE, pixels); seen += pixels.reduce((sum, byte) => sum + byte, 0); }
      return seen > 0 ? 'secret' : 'empty'; })(new OffscreenCanvas(64, 64).getContext('webgl'))`,
    onlyLater: true,
    isLentAgain: true,
  },
  'agents of the whole site': {
    write: `0`,
    read: `(window.originAgentCluster ? 'as always' : 'secret')`,
    onlyLater: true,
    path: '/site-keyed',
  },
};

/** Functions that the scripts above use. */
const TOOLS = `
  const OTHER = 'http://localhost:' + location.port;
  const cached = (url) => fetch(url, { cache: 'only-if-cached', mode: 'same-origin' }).then(() => 'secret', () =>
    fetch(url, { cache: 'force-cache' }).then((response) => response.text()).then((text) => /number 1$/.test(text) ? 'secret' : 'new'));
  const load = (src) => new Promise((onload, onerror) => document.head.append(Object.assign(document.createElement('script'), { src, onload, onerror })));
  const frame = (src) => new Promise((resolve) => {
    addEventListener('message', ({ data }) => resolve(data));
    document.body.append(Object.assign(document.createElement('iframe'), { src }));
  });`;

/** Responses by number of the page, for which the `load` event of each waits. */
const unloaded = new Map<number, ServerResponse>();
let pages = 0;

function page(script: string): string {
  pages += 1;
  return `<!doctype html><body><script src="/asset.js"></script><p id="out">busy</p><img src="/until-done?${pages}">
    <script type="module">${TOOLS}
    try { ${script} } catch (error) { out.textContent = 'failed: ' + error; }
    fetch('/done?${pages}', { method: 'POST' });</script>`;
}

const show = (read: string): string => `out.textContent = 'read: ' + ${read};`;
let counted = 0;

function routes(): Readonly<Record<string, SiteRoute>> {
  const html = (headers: Record<string, string>, toScript: (channel: Channel) => string) => {
    return (_: unknown, response: ServerResponse, url: URL) => {
      const channel = channels[url.searchParams.get('channel') ?? ''];
      response.writeHead(200, { 'content-type': 'text/html', ...headers });
      response.end(page(channel === undefined ? '' : toScript(channel)));
    };
  };
  const text = (type: string, body: () => string, headers: Record<string, string> = {}) => {
    return (_: unknown, response: ServerResponse) => {
      response.writeHead(200, { 'content-type': type, ...headers }).end(body());
    };
  };
  const kept = { 'cache-control': 'max-age=86400', 'access-control-allow-origin': '*' };
  const validated = (type: string, body: (seen: string) => string) => {
    return (request: IncomingMessage, response: ServerResponse) => {
      const seen = request.headers['if-none-match'] === undefined ? 'none' : 'secret';
      response.writeHead(200, { 'content-type': type, etag: '"1"' }).end(body(seen));
    };
  };
  return {
    '/write': html({}, ({ write }) => write),
    '/read': html({}, ({ read }) => show(read)),
    '/both': html({}, ({ write, read }) => `${write}; ${show(read)}`),
    '/accept-ch': html({ 'accept-ch': 'device-memory, sec-ch-ua-model' }, ({ write }) => write),
    '/site-keyed': html({ 'origin-agent-cluster': '?0' }, ({ write }) => write),
    '/until-done': (_: unknown, response: ServerResponse, { search }: URL) => {
      unloaded.set(Number(search.slice(1)), response);
    },
    '/done': (_: unknown, response: ServerResponse, { search }: URL) => {
      response.end();
      unloaded
        .get(Number(search.slice(1)))
        ?.writeHead(204, { 'cache-control': 'no-store' })
        .end();
    },
    '/asset.js': text('text/javascript', () => '0', { 'cache-control': 'public, max-age=86400' }),
    '/late-cookie': (_: unknown, response: ServerResponse) => {
      setTimeout(() => response.writeHead(200, { 'set-cookie': 'a=secret' }).end(), 60);
    },
    '/number': text('text/plain', () => `number ${(counted += 1)}`, kept),
    '/private.js': text('text/javascript', () => `// number ${(counted += 1)}`, {
      'cache-control': 'private, max-age=86400',
    }),
    '/moved': (_: unknown, response: ServerResponse) => {
      response.writeHead(301, { location: '/number?moved', ...kept }).end();
    },
    '/validated': validated('text/plain', (seen) => seen),
    '/validated.js': validated('text/javascript', (seen) => `globalThis.validated = '${seen}'`),
    '/secured': (request: IncomingMessage, response: ServerResponse) => {
      const isKnown = request.headers['authorization'] !== undefined;
      response.writeHead(isKnown ? 200 : 401, { 'www-authenticate': 'Basic realm="x"' }).end();
    },
    '/echo-authorization': (request: IncomingMessage, response: ServerResponse) => {
      const known = request.headers['authorization'];
      response.end(known === undefined ? 'none' : 'secret');
    },
    '/hints': (request: IncomingMessage, response: ServerResponse) => {
      const { 'device-memory': memory, 'sec-ch-ua-model': model } = request.headers;
      response.end(memory === undefined && model === undefined ? 'none' : 'secret');
    },
    '/worker.js': text('text/javascript', () => ''),
    '/shared.js': text(
      'text/javascript',
      () =>
        `let kept = 'none'; onconnect = ({ ports: [port] }) => { port.onmessage = ({ data }) => { kept = data || kept; port.postMessage(kept); }; };`,
    ),
    '/fetching.js': text(
      'text/javascript',
      () => `fetch('/number?worker').then(() => postMessage('done'))`,
    ),
    '/frame': text(
      'text/html',
      () =>
        `<script>if (location.search === '?write') localStorage.a = 'secret'; parent.postMessage(String(localStorage.a), '*');</script>`,
    ),
  };
}

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes: routes() });
  app = await startApp({
    env: { NETWORK_ALLOW: `${site.host},localhost:${site.port}`, BROWSER_PAGES: '1' },
  });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

async function crawl(path: string, channel: string, parameters: Record<string, string> = {}) {
  const url = `${site.url}${path}?${new URLSearchParams({ channel })}`;
  const result = await crawlInBrowser(app, url, parameters);
  expect(result).toMatchObject({ cb_status: 200 });
  return /id="out"[^>]*>([^]*?)<\/p>/.exec(result.body)?.[1] ?? result.body;
}

/** Crawls until the page has the asset in its cache; whether the crawl after that uses that page again is seen by the hits. */
async function warmUp(): Promise<void> {
  let hits = Number.NaN;
  for (let n = 0; n < 3 && hits !== site.hits('/asset.js'); n += 1) {
    hits = site.hits('/asset.js');
    await crawl('/read', 'none');
  }
}

describe('of what a page writes to, the next crawl sees nothing', () => {
  test.each(Object.entries(channels))('%s', async (name, channel) => {
    const { isLentAgain, onlyLater, path = '/write' } = channel;
    counted = 0;
    if (onlyLater === undefined) {
      expect(await crawl('/both', name, { set_cookies: 'own=page' })).toMatch(/^read: .*secret/);
      counted = 0;
    }
    await warmUp();
    const before = site.hits('/asset.js');
    expect(await crawl(path, name)).not.toContain('failed');
    const seen = await crawl('/read', name);
    expect(seen).toContain('read: ');
    expect(seen).not.toContain('secret');
    expect(site.hits('/asset.js') - before).toBe(isLentAgain === true ? 0 : 1);
  });

  test('of any owner', async () => {
    const token = await otherAccount(app);
    await warmUp();
    const before = site.hits('/asset.js');
    for (const name of ['cookie', 'localStorage', 'IndexedDB', 'answer in the cache']) {
      counted = 0;
      await crawl('/write', name);
      counted = 1;
      expect(await crawl('/read', name, { token })).not.toContain('secret');
    }
    expect(site.hits('/asset.js')).toBeGreaterThan(before);
  });

  test('unless it asks for it by cookies_session, which shares nothing else', async () => {
    const session = { cookies_session: 'one' };
    await crawl('/write', 'cookie', session);
    await crawl('/write', 'localStorage', session);
    expect(await crawl('/read', 'cookie', session)).toContain('secret');
    expect(await crawl('/read', 'localStorage', session)).not.toContain('secret');
    expect(await crawl('/read', 'cookie')).not.toContain('secret');
  });
});
