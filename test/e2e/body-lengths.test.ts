import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { brotliCompressSync, constants, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { shareApp } from '../support/shared-app.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

// Memory of bodies is handed over, given back or freed by rules that depend on their length and coding.
// No two of these pages are alike, and they are crawled together: a body of another page is seen, too.

const CODERS = {
  identity: (page: Buffer) => page,
  gzip: (page: Buffer) => gzipSync(page),
  // The usual level takes seconds for all of these.
  br: (page: Buffer) =>
    brotliCompressSync(page, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: (page: Buffer) => zstdCompressSync(page),
} as const;
const CODINGS = ['identity', 'gzip', 'br', 'zstd'] as const;

/** Repeated text is decoded at once, and what hardly compresses by a stream where it is long. */
const FILLINGS = {
  repeated: (path: string, bytes: number) =>
    `<p>${path}</p>\n`.repeat(bytes / path.length).slice(0, bytes),
  noise: (path: string, bytes: number) =>
    createHash('shake256', { outputLength: bytes }).update(path).digest('base64').slice(0, bytes),
} as const;

const KIBIBYTES = [16, 32, 64, 128, 256, 512] as const;
const LENGTHS = KIBIBYTES.flatMap((kb) => [-1, 0, 1].map((more) => kb * 1_024 + more));

/** More than a read that is left to the garbage collector. */
const PIECE_BYTES = 20_000;

const PAGES = LENGTHS.flatMap((bytes) =>
  CODINGS.flatMap((coding) =>
    (['repeated', 'noise'] as const).map((filling) => {
      const path = `/${bytes}/${coding}/${filling}`;
      return { path, coding, page: Buffer.from(FILLINGS[filling](path, bytes)) };
    }),
  ),
);

/** After the headers, so that each piece arrives in memory of its own. */
async function sendInPieces(response: ServerResponse, body: Buffer): Promise<void> {
  response.flushHeaders();
  for (let at = 0; at < body.byteLength; at += PIECE_BYTES) {
    await setTimeout(1);
    response.write(body.subarray(at, at + PIECE_BYTES));
  }
  response.end();
}

const shared = shareApp();

test('a page of each length and coding comes to storage and to a webhook as it is', async () => {
  const routes = PAGES.map(({ path, coding, page }, n): [string, SiteRoute] => {
    const body = CODERS[coding](page);
    const headers = { 'content-type': 'text/html', 'content-encoding': coding };
    return [
      path,
      (_request, response) => {
        if (n % 3 > 0) response.setHeader('content-length', body.byteLength);
        response.writeHead(200, headers);
        if (n % 3 === 2) void sendInPieces(response, body);
        else response.end(body);
      },
    ];
  });
  await using site = await startSite({ routes: Object.fromEntries(routes) });
  await using receiver = await startReceiver();
  const app = shared();
  const settings = { name: 'hook', callback_url: receiver.url, concurrency: 50 };
  const made = await app.rest('POST', `/crawler/${NORMAL}`, settings);
  const verifier = new Webhook(made.json.crawler.webhook_secret);
  const hook = await createCrawler(app, 'hook', settings);
  const kept = await createCrawler(app, 'kept', { concurrency: 50 });
  const urls = PAGES.map(({ path }) => site.url + path);
  const [stored, posted] = [await kept.pushAll(urls), await hook.pushAll(urls)];
  await receiver.until(PAGES.length);
  for (const [n, { path, page }] of PAGES.entries()) {
    expect(page.byteLength).toBe(Number(path.split('/')[1]));
    const [post] = receiver.byRid(posted[n] ?? '');
    const sent = gunzipSync(post?.rawBody ?? '');
    expect([path, sent.byteLength, sent.equals(page)]).toEqual([path, page.byteLength, true]);
    const verify = () =>
      verifier.verify(post?.text ?? '', post?.headers ?? {}, { jsonParse: false });
    expect(verify).not.toThrow();
    const read = await eventually(async () => {
      const reply = await fetch(`${app.url}/storage?token=${NORMAL}&rid=${stored[n]}`);
      expect(reply.status).toBe(200);
      return Buffer.from(await reply.arrayBuffer());
    });
    expect([path, read.byteLength, read.equals(page)]).toEqual([path, page.byteLength, true]);
    // A body that is lost on its way would be requested again.
    expect([path, site.hits(path)]).toEqual([path, 2]);
  }
});
