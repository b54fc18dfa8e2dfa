import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { bytesRoute, crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { listen } from '../support/listen.ts';
import { type Site, startSite } from '../support/site.ts';

const SCRIPT = '<div id="out"></div><script>out.textContent = "made by " + "script";</script>';
const goTo = (address: string): string =>
  `<script>location.href = ${JSON.stringify(address)};</script>`;

const routes = {
  '/script': htmlRoute(SCRIPT),
  '/refresh': htmlRoute('<meta http-equiv="refresh" content="0;url=/script"><p>before</p>'),
  '/refresh-header': htmlRoute('<p>before</p>', { refresh: '0; url=/script' }),
  '/onload': htmlRoute('<script>onload = () => { location = "/script"; };</script><p>before</p>'),
  '/refresh-later': htmlRoute('<meta http-equiv="refresh" content="60;url=/script"><p>before</p>'),
  '/reloads': htmlRoute('<script>location.reload();</script>'),
  '/file': (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { 'content-disposition': 'attachment; filename=a.bin' });
    response.end('file');
  },
  '/to-file': htmlRoute(`the page stays${goTo('/file')}`),
  '/typed': (_: unknown, response: ServerResponse, url: URL) => {
    const headers = Object.fromEntries(url.searchParams);
    response.writeHead(200, { 'content-type': 'text/html', ...headers }).end(`<p>a${SCRIPT}`);
  },
  '/csv': bytesRoute('text/csv', 'a;b'),
  '/to-csv': htmlRoute(`the page stays${goTo('/csv')}`),
  '/to-nowhere': htmlRoute(goTo('http://127.0.0.1:2/lost')),
  '/to-loop': htmlRoute(goTo('/loop')),
  '/loop': (_: unknown, response: ServerResponse, url: URL) => {
    const next = Number(url.searchParams.get('n') ?? 0) + 1;
    response.writeHead(302, { location: `/loop?n=${next}` }).end();
  },
  '/to-port': htmlRoute(goTo('http://127.0.0.1:22/')),
  '/to-json': htmlRoute(goTo('/json')),
  '/json': bytesRoute('application/json', '{"a": 1}'),
  '/latin1': bytesRoute('text/plain; charset=iso-8859-1', Buffer.from('Grüße', 'latin1')),
  '/latin1-json': bytesRoute(
    'application/json; charset=iso-8859-1',
    Buffer.from('{"a":"Grüße"}', 'latin1'),
  ),
  '/sniffed': (_: unknown, response: ServerResponse) => {
    response.writeHead(200).end(`<!doctype html>${SCRIPT}`);
  },
  '/frame': htmlRoute('<iframe src="/script"></iframe><p>outer</p>'),
  '/written': htmlRoute(
    '<script>onload = () => { document.open(); document.write("<p>written"); };</script>',
  ),
  '/clobbered': htmlRoute(`<img name="documentElement"><img name="doctype">${SCRIPT}`),
  '/shadow': htmlRoute(
    `<my-card><b slot="title">slotted</b><i>unslotted</i></my-card>
    <my-list><template shadowrootmode="open"><p>declared</p><slot>fallback</slot></template></my-list>
    <form><input name="childNodes"><p>in a form</p></form><script>
      window.made = 0;
      customElements.define('my-card', class extends HTMLElement {
        constructor() {
          super();
          document.title = 'made ' + ++window.made;
          this.attachShadow({ mode: 'open' }).innerHTML = '<h2><slot name="title"></slot></h2><p>shadow text</p>';
        }
      });
    </script>`,
  ),
  '/posts': htmlRoute(
    `<form method="post" action="/posted"><textarea name="a" hidden></textarea></form><script>
      const [form] = document.forms;
      form.a.value = 'x'.repeat(3e6);
      form.submit();
    </script>`,
  ),
  '/posted': (request: IncomingMessage, response: ServerResponse) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
    });
    request.on('end', () =>
      htmlRoute(`<p>posted ${length}</p>`)(request, response, new URL(site.url)),
    );
  },
  '/hashes': htmlRoute(
    '<script>history.pushState({}, "", "/pushed?a=1"); location.hash = "top";</script>',
  ),
};

let app: TestApp;
let site: Site;

beforeAll(async () => {
  site = await startSite({ routes });
  app = await startApp({
    env: { NETWORK_ALLOW: `${site.host},127.0.0.1:2` },
  });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

const crawl = (path: string, parameters: Record<string, string> = {}) =>
  crawlInBrowser(app, site.url + path, parameters);

describe('a page that navigates further', () => {
  test.each(['/refresh', '/refresh-header', '/onload'])('%s is followed', async (path) => {
    const result = await crawl(path);
    expect(result).toMatchObject({ cb_status: 200, url: `${site.url}/script` });
    expect(result.body).toContain('made by script');
  });

  test('later than at once is taken before', async () => {
    expect((await crawl('/refresh-later')).body).toContain('before');
  });

  test('without end is a failure that stays', async () => {
    expect(await crawl('/reloads')).toMatchObject({ cb_status: 523, failure: 'redirect_loop' });
  });

  test.each(['file', 'csv'])('to a %s stays what it is', async (what) => {
    for (const wait of ['0', '500']) {
      const result = await crawl(`/to-${what}`, { page_wait: wait });
      expect(result).toMatchObject({ cb_status: 200, url: `${site.url}/to-${what}` });
      expect(result.body).toContain('the page stays');
    }
  });

  test('to text is that text', async () => {
    const result = await crawl('/to-json');
    expect(result).toMatchObject({ cb_status: 200, body: '{"a": 1}' });
  });

  test('to where nothing answers fails, and says where', async () => {
    expect(await crawl('/to-nowhere')).toMatchObject({
      cb_status: 521,
      url: 'http://127.0.0.1:2/lost',
    });
  });

  test.each([
    ['/to-loop', 'too_many_redirects', '/loop'],
    ['/to-port', 'port_not_allowed', ':22/'],
  ])('%s fails for good: %s', async (path, failure, end) => {
    const result = await crawl(path);
    expect(result).toMatchObject({ cb_status: 523, failure });
    expect(result.url).toContain(end);
  });

  test('by a form of megabytes is followed', async () => {
    const result = await crawl('/posts');
    expect(result).toMatchObject({ cb_status: 200, url: `${site.url}/posted` });
    expect(result.body).toContain('posted 3000002');
  });

  test('within itself ends at the address it shows', async () => {
    expect(await crawl('/hashes')).toMatchObject({ url: `${site.url}/pushed?a=1#top` });
  });
});

test.each(['file:///etc/passwd', 'chrome://version/', 'data:text/html,x', 'mailto:a@b.example'])(
  'a redirect to %s is a failure that stays',
  async (address) => {
    const result = await crawl(`/redirect-to?url=${encodeURIComponent(address)}`);
    const named = { cb_status: 523, failure: 'invalid_redirect', original_status: 302 };
    expect(result).toMatchObject(named);
  },
);

test.each(['http://10.0.0.1/', 'http://127.0.0.1:25/'])(
  'a redirect to %s, which is refused, has the status of the redirect, with either token',
  async (address) => {
    const path = `/redirect-to?url=${encodeURIComponent(address)}`;
    const result = await crawl(path);
    expect(result).toMatchObject({ cb_status: 523, original_status: 302, url: site.url + path });
    const query = new URLSearchParams({ token: NORMAL, url: site.url + path, format: 'json' });
    const { cb_status, original_status, url } = (await app.rest('GET', `/?${query}`)).json;
    expect(result).toMatchObject({ cb_status, original_status, url });
  },
);

describe('what is not HTML', () => {
  test.each(['/latin1', '/latin1-json'])('%s is decoded once', async (path) => {
    const { body } = await crawl(path);
    expect(body).toContain('Grüße');
  });

  test.each(['video/mp4', 'audio/mpeg', 'audio/wav', 'application/pdf'])(
    'as %s is given in its own bytes at once',
    async (type) => {
      await using media = await startSite({
        routes: { '/media': bytesRoute(type, Buffer.from([0, 1, 2, 250])) },
      });
      await using own = await startApp({ env: { NETWORK_ALLOW: media.host } });
      const { cb_status: status, body } = await crawlInBrowser(own, `${media.url}/media`);
      expect(status).toBe(200);
      expect(Buffer.from(body, 'base64')).toEqual(Buffer.from([0, 1, 2, 250]));
      // Not once to see what it is, and again to have it.
      expect(media.hits('/media')).toBe(1);
    },
  );

  test('has its picture taken when one is asked for', async () => {
    const result = await crawl('/json', { screenshot: 'true' });
    expect(result).toMatchObject({ cb_status: 200, body: '{"a": 1}' });
    expect(result.screenshot_url).toContain('/screenshots');
  });

  test('is HTML when it begins so and says nothing else', async () => {
    expect((await crawl('/sniffed')).body).toContain('made by script');
  });
});

describe('the page that is taken', () => {
  test('is whole though its names hide those of the document', async () => {
    const { body } = await crawl('/clobbered');
    expect(body).toMatch(/^<!DOCTYPE html><html>[^]*made by script[^]*<\/html>$/i);
  });

  test('has what is in shadow trees where it is seen', async () => {
    const { body } = await crawl('/shadow');
    expect(body).toContain(
      '<my-card><h2><b slot="title">slotted</b></h2><p>shadow text</p></my-card>',
    );
    expect(body).toContain('<my-list><p>declared</p>fallback</my-list>');
    expect(body).toContain('<p>in a form</p>');
    // Reading the page makes nothing in it.
    expect(body).toContain('<title>made 1</title>');
  });

  test('is what was written into it', async () => {
    expect((await crawl('/written')).body).toContain('written');
  });
});

describe('headers of pages are read as Chromium reads them', () => {
  test.each([
    ['content-type', 'text/html, charset=utf-8'],
    ['content-type', 'text/html charset=utf-8'],
    ['content-type', 'text/html(x)'],
    ['content-type', 'text/html,text/html; charset=utf-8'],
    ['content-type', 'text/plain, text/html'],
    ['content-type', 'text/html; a="b,c/d"'],
    // By its content.
    ['content-type', '*/*'],
    ['content-type', 'html'],
    ['content-type', 'application/unknown'],
    ['content-disposition', 'inline; filename=a.html'],
    ['content-disposition', 'filename=a.html'],
    ['content-disposition', '"inline"'],
  ])('%s: %s is a page', async (name, value) => {
    const result = await crawlInBrowser(
      app,
      `${site.url}/typed?${name}=${encodeURIComponent(value)}`,
    );
    expect(result).toMatchObject({ cb_status: 200, original_status: 200 });
    expect(result.body).toContain('made by script');
  });

  test.each(['attachment', 'form-data; name="x"', 'render'])(
    'content-disposition: %s is a file',
    async (value) => {
      const address = `${site.url}/typed?content-disposition=${encodeURIComponent(value)}`;
      const result = await crawlInBrowser(app, address);
      expect(result).toMatchObject({ cb_status: 200, original_status: 200 });
      expect(result.body).toBe(`<p>a${SCRIPT}`);
    },
  );
});

test('a crawl time of some seconds is enough for pages, and a server that never answers takes it all', async () => {
  const silent = createServer((socket) => void socket.on('error', () => undefined));
  await using open = await listen(silent);
  const { port } = open;
  await using own = await startApp({
    env: { NETWORK_ALLOW: `${site.host},127.0.0.1:${port}`, CRAWL_TIMEOUT_SECONDS: '15' },
  });
  expect(await crawlInBrowser(own, `${site.url}/script`)).toMatchObject({ cb_status: 200 });
  expect(await crawlInBrowser(own, `http://127.0.0.1:${port}/`)).toMatchObject({
    cb_status: 522,
    failure: 'timeout',
  });
});
