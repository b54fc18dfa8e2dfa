import type { ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { startSite } from '../support/site.ts';

// What a site has compressed is kept and delivered as it came, where that is just what is to be sent.

const PAGE = `<!doctype html><title>Prix</title><p>${'Un café à 3 €. '.repeat(100)}</p>`;
const LONG = PAGE.repeat(80);
/** Levels that the service does not use, so that its bytes differ. */
const gzip = (text: string | Buffer): Buffer => gzipSync(text, { level: 9 });
const HTML = 'text/html; charset=utf-8';

interface Case {
  readonly what: string;
  readonly coding: string;
  readonly body: Buffer;
  readonly type?: string;
  readonly page?: string;
  /** Whether a delivery, and storage, have the very bytes. */
  readonly isKept?: boolean;
}

const CASES: readonly Case[] = [
  { what: 'gzip', coding: 'gzip', body: gzip(PAGE), isKept: true },
  { what: 'long-gzip', coding: 'gzip', body: gzip(LONG), page: LONG, isKept: true },
  { what: 'br', coding: 'br', body: brotliCompressSync(PAGE) },
  { what: 'long-br', coding: 'br', body: brotliCompressSync(LONG), page: LONG },
  { what: 'zstd', coding: 'zstd', body: zstdCompressSync(PAGE) },
  { what: 'deflate', coding: 'deflate', body: deflateSync(PAGE) },
  { what: 'none', coding: 'identity', body: Buffer.from(PAGE) },
  { what: 'twice', coding: 'gzip, br', body: brotliCompressSync(gzip(PAGE)) },
  { what: 'mark', coding: 'gzip', body: gzip(`\ufeff${PAGE}`) },
  {
    what: 'latin1',
    coding: 'gzip',
    type: 'text/html; charset=iso-8859-1',
    body: gzip(Buffer.from(PAGE.replaceAll('€', 'F'), 'latin1')),
    page: PAGE.replaceAll('€', 'F'),
  },
  { what: 'garbage', coding: 'gzip', body: Buffer.concat([gzip(PAGE), Buffer.from('garbage')]) },
  {
    what: 'members',
    coding: 'gzip',
    body: Buffer.concat([gzip(PAGE), gzip('<p>more')]),
    page: `${PAGE}<p>more`,
  },
];

async function startCodedSite() {
  const routes = CASES.map(({ what, coding, body, type = HTML }) => [
    `/coded/${what}`,
    (_request: unknown, response: ServerResponse) =>
      void response.writeHead(200, { 'content-type': type, 'content-encoding': coding }).end(body),
  ]);
  return startSite({ routes: Object.fromEntries(routes) });
}

const shared = shareApp();

test('a delivery has the bytes of the site where they are its gzip', async () => {
  await using site = await startCodedSite();
  await using receiver = await startReceiver();
  const app = shared();
  const callback = { callback_url: receiver.url };
  const made = await app.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', ...callback });
  const verifier = new Webhook(made.json.crawler.webhook_secret);
  const hook = await createCrawler(app, 'hook', callback);
  for (const [n, { what, body, page = PAGE, isKept = false }] of CASES.entries()) {
    const rid = await hook.push(`${site.url}/coded/${what}`);
    await receiver.until(n + 1);
    const [post] = receiver.byRid(rid);
    expect([what, post?.text]).toEqual([what, page]);
    expect(post?.headers['content-encoding']).toBe('gzip');
    expect([what, post?.rawBody.equals(body)]).toEqual([what, isKept]);
    const verify = () =>
      verifier.verify(post?.text ?? '', post?.headers ?? {}, { jsonParse: false });
    expect(verify).not.toThrow();
  }
  const asJson = await hook.push(`${site.url}/coded/gzip`, '&format=json');
  await receiver.until(CASES.length + 1);
  expect(receiver.byRid(asJson)[0]?.json).toMatchObject({ body: PAGE, original_status: 200 });
});

test('storage gives each client the page in a coding that it knows', async () => {
  await using site = await startCodedSite();
  const app = shared();
  const crawler = await createCrawler(app, 'kept');
  for (const { what, body, page = PAGE, isKept = false } of CASES) {
    const url = `${site.url}/coded/${what}`;
    const rid = await crawler.push(url);
    expect([what, (await crawler.stored(rid)).json.body]).toEqual([what, page]);
    const path = `${app.url}/storage?token=${NORMAL}&rid=${rid}`;
    const plain = await fetch(path, { headers: { 'accept-encoding': 'identity' } });
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, page]);
    const coded = await fetch(path, { headers: { 'accept-encoding': 'gzip, br, zstd' } });
    expect([coded.headers.get('content-encoding'), await coded.text()]).toEqual(['gzip', page]);
    const bulk = await app.rest('POST', `/storage/bulk?token=${NORMAL}`, { rids: [rid] });
    const packed = Buffer.from(bulk.json[0].body, 'base64');
    expect(gunzipSync(packed).toString()).toBe(page);
    expect([what, packed.equals(body)]).toEqual([what, isKept]);
    const data = await crawler.push(url, '&scraper=metadata');
    expect((await crawler.stored(data)).json.original_status).toBe(200);
  }
});

test('the bytes that are kept count, in the coding that they came in', async () => {
  await using site = await startCodedSite();
  const app = shared();
  const crawler = await createCrawler(app, 'counted');
  for (const { what, body } of CASES.filter((each) => each.coding === 'br' || each.isKept)) {
    const rid = await crawler.push(`${site.url}/coded/${what}`);
    await crawler.stored(rid);
    const listed = await app.rest('GET', `/storage/results?token=${NORMAL}`);
    const found = listed.json.results.find((each: { rid: string }) => each.rid === rid);
    expect([what, Number(found.size_bytes)]).toEqual([what, body.length]);
  }
});
