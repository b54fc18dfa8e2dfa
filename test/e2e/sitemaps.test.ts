import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { shareApp } from '../support/shared-app.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

const XMLNS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"';
const HEAD = '<?xml version="1.0" encoding="UTF-8"?>';

/** Answers with bytes that are made when they are asked for. */
function answer(type: string, make: () => string | Buffer): SiteRoute {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': type }).end(make());
  };
}

function urlset(entries: readonly (readonly [url: string, lastmod?: string])[]): string {
  const urls = entries.map(([url, lastmod]) => {
    const at = lastmod === undefined ? '' : `<lastmod>${lastmod}</lastmod>`;
    return `<url><loc> ${url.replaceAll('&', '&amp;')}\n</loc>${at}</url>`;
  });
  return `${HEAD}<urlset ${XMLNS}>${urls.join('')}</urlset>`;
}

const shared = shareApp();

test('a sitemap is read by the service: an index, gzip, text, by date; each URL is pushed', async () => {
  let base = '';
  const page = (n: number | string): string => `${base}/page/${n}`;
  await using site = await startSite({
    routes: {
      '/index.xml': answer('application/xml', () => {
        const sitemaps = [
          [`${base}/packed.xml.gz`, '2030-01-01'],
          [`${base}/list.txt`],
          [`${base}/old.xml`, '2020-01-01'],
          [`${base}/missing.xml`],
          [`${base}/broken.xml`],
          [`${base}/index.xml`],
        ].map(
          ([loc, at]) =>
            `<sitemap><loc>${loc}</loc>${at ? `<lastmod>${at}</lastmod>` : ''}</sitemap>`,
        );
        return `${HEAD}<sitemapindex ${XMLNS}>${sitemaps.join('')}</sitemapindex>`;
      }),
      '/packed.xml.gz': answer('application/gzip', () =>
        gzipSync(
          urlset([
            [page('1?a=1&b=2'), '2030-01-01T10:00:00Z'],
            [page(2), '2020-01-01'],
            [page(3)],
            ['ftp://example.com/', '2030-01-01'],
          ]),
        ),
      ),
      '/list.txt': answer('text/plain', () => `${page(4)}\r\n\nno URL\n${page(5)}`),
      '/old.xml': answer('application/xml', () => urlset([[page(6)]])),
      '/missing.xml': (_request, response) => response.writeHead(404).end('gone'),
      '/broken.xml': answer('application/xml', () => '<urlset><url>'),
    },
  });
  base = site.url;
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const sitemap = ['--sitemap', `${base}/index.xml`];
  const args = ['push', 'shop', ...sitemap, '--since', '2025-01-01', '--batch', 'map'];
  const pushed = await runCommandLine(args, { env });
  expect(pushed.code, pushed.stderr).toBe(0);
  const lines = pushed.stdout.trim().split('\n');
  const urls = lines.map((line) => line.split(' ')[1]);
  expect(urls).toEqual([page('1?a=1&b=2'), page(3), page(4), page(5)]);
  expect(pushed.stderr).toContain('/missing.xml cannot be read: status_404');
  expect(pushed.stderr).toContain('/broken.xml cannot be read: not_a_sitemap');
  const { json } = await app.rest('GET', `${shop.path}/batches/map`);
  expect(json).toMatchObject({ accepted: 4 });

  const all = await app.rest('GET', `/sitemap?token=${NORMAL}&url=${base}/index.xml`);
  const messages = all.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const found = messages.flatMap((each) => each.urls);
  expect(found).toHaveLength(6);
  expect(found).toContainEqual({ url: page(2), lastmod: '2020-01-01T00:00:00Z' });
});

test('what cannot be read or requested is refused by its reason', async () => {
  await using site = await startSite({
    routes: { '/no.xml': answer('application/xml', () => '<urlset>') },
  });
  const app = shared();
  const read = (url: string) => app.rest('GET', `/sitemap?token=${NORMAL}&url=${url}`);
  const broken = await read(`${site.url}/no.xml`);
  expect(broken.json).toMatchObject({ code: 'sitemap_unreadable', field: 'url' });
  // The service's own client guards what may be reached.
  const inside = await read('http://169.254.169.254/sitemap.xml');
  expect(inside.json.error).toContain('address_not_allowed');
  expect((await read('nonsense')).status).toBe(422);
});

test('what is left out is told: sitemaps below the third level, and one that is too long', async () => {
  const index = (loc: string): string =>
    `<sitemapindex ${XMLNS}><sitemap><loc>${loc}</loc></sitemap></sitemapindex>`;
  const level = (n: number): SiteRoute =>
    answer('application/xml', () => index(`${site.url}/level-${n + 1}.xml`));
  const comment = `<!--${' '.repeat(500_000)}-->`;
  const long = (): Buffer => gzipSync(`<urlset>${comment.repeat(140)}</urlset>`);
  await using site = await startSite({
    routes: {
      '/level-1.xml': level(1),
      '/level-2.xml': level(2),
      '/level-3.xml': level(3),
      '/long.xml.gz': answer('application/gzip', long),
    },
  });
  const read = (path: string) =>
    shared().rest('GET', `/sitemap?token=${NORMAL}&url=${site.url}/${path}`);
  const deep = await read('level-1.xml');
  const failed = { url: `${site.url}/level-3.xml`, reason: 'nested_too_deep' };
  expect(JSON.parse(deep.text)).toMatchObject({ failed });
  expect((await read('long.xml.gz')).json).toMatchObject({ reason: 'sitemap_too_long' });
});

const PNG = Buffer.from('89504e470d0a1a0a', 'hex');

test.each([
  ['a page of the site, well-formed', '<html><body>Not here.</body></html>', 409],
  ['a picture', PNG, 409],
  ['a text without a URL', 'Not here.\n', 409],
  ['an empty list of URLs', urlset([]), 200],
  ['an empty index', `<sitemapindex ${XMLNS}/>`, 200],
  ['an empty text', '\n', 200],
  ['entries of another root', '<map><url><loc>http://a.example/</loc></url></map>', 200],
])('%s, read as a sitemap', async (_title, body, status) => {
  await using site = await startSite({
    routes: { '/sitemap.xml': answer('text/html', () => body) },
  });
  const path = `/sitemap?token=${NORMAL}&url=${site.url}/sitemap.xml`;
  const reply = await shared().rest('GET', path);
  expect(reply.status).toBe(status);
  if (status === 409) {
    expect(reply.json).toMatchObject({ code: 'sitemap_unreadable', reason: 'not_a_sitemap' });
  }
});
