import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createRobotsGate } from '../../../src/engine/politeness/robots-gate.ts';
import { createHttpClient } from '../../../src/net/create-http-client.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { eventually } from '../../support/eventually.ts';
import { type SiteRoute, startSite } from '../../support/site.ts';
import { createTestClock } from '../../support/test-clock.ts';

const TASK = { crawlerId: 'c', accountId: 'a' };
const { signal } = new AbortController();

async function startGated(robotsTxt: SiteRoute) {
  const site = await startSite({ routes: { '/robots.txt': robotsTxt } });
  const client = createHttpClient({ allow: parseNetworkAllow(site.host) });
  const gate = createRobotsGate({ client, clock: createTestClock() });
  const route = { proxy: undefined, name: '' };
  return {
    site,
    check: (path: string) => gate.check(TASK, new URL(path, site.url), route, signal),
    async [Symbol.asyncDispose]() {
      await client.close();
      await site[Symbol.asyncDispose]();
    },
  };
}

const DISALLOWED = { refused: 'robots_disallowed' };
const COMMENT = `# ${'x'.repeat(97)}\n`;
/** 500 KiB, with the rules that count at both ends, and as much again. */
const LONG = (() => {
  const first = 'User-agent: *\nDisallow: /first\n';
  const last = 'Disallow: /last\n';
  const filled = COMMENT.repeat(Math.floor((500 * 1024 - first.length - last.length) / 100));
  return first + filled + last + COMMENT.repeat(5_000);
})();

describe('of a robots.txt over 512 KiB, the first 500 KiB count (RFC 9309, 2.5)', () => {
  test.each([
    ['identity', (text: string) => Buffer.from(text)],
    ['gzip', (text: string) => gzipSync(text)],
    ['br', (text: string) => brotliCompressSync(text)],
    ['zstd', (text: string) => zstdCompressSync(text)],
    // Nothing is saved, so that the coded body is over the limit, too.
    ['gzip', (text: string) => gzipSync(text, { level: 0 })],
  ])('%s', async (coding, encode) => {
    await using gated = await startGated((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding }).end(encode(LONG));
    });
    expect(await gated.check('/first')).toEqual(DISALLOWED);
    expect(await gated.check('/last')).toEqual(DISALLOWED);
    expect(await gated.check('/page/1')).toEqual({ delayMs: 0 });
    expect(gated.site.hits('/robots.txt')).toBe(1);
  });

  test('one that never ends is read no further, and its connection is closed', async () => {
    let written = 0;
    let isClosed = false;
    await using gated = await startGated((_request, response) => {
      response.once('close', () => {
        isClosed = true;
      });
      const writeMore = (): void => {
        if (response.destroyed) return;
        written += COMMENT.length * 100;
        response.write(COMMENT.repeat(100), () => setImmediate(writeMore));
      };
      response.write('User-agent: *\nDisallow: /first\n');
      writeMore();
    });
    expect(await gated.check('/first')).toEqual(DISALLOWED);
    await eventually(() => expect(isClosed).toBe(true));
    expect(written).toBeLessThan(16 * 1024 * 1024);
  });
});
