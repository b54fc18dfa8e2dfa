import { get, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../../support/app.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { eventually } from '../../support/eventually.ts';
import { measureIterations, msOfOnePiece } from '../../support/longest-iteration.ts';
import { type Site, startSite } from '../../support/site.ts';

// Every call of every tenant passes the main thread. So no page may keep it for long, however it is made.

const MIB = 1024 * 1024;
/**
 * Bound of the processor time of one iteration, in milliseconds: a quarter of what 10 MiB of text take as JSON in one piece on this
 * machine. The pages below took between half and five times as much as that piece.
 */
const LONGEST_MS = msOfOnePiece() / 4;

let stack: AsyncDisposableStack;
let app: TestApp;
let site: Site;

const pages: Readonly<Record<string, { readonly type: string; readonly body: Buffer }>> = {
  '/long-in-json': { type: 'text/html', body: Buffer.alloc(9 * MIB, 'a\x01') },
  '/json': { type: 'application/json', body: Buffer.from(`[${'{},'.repeat(3 * MIB)}{}]`) },
  '/bytes': { type: 'image/png', body: Buffer.alloc(9 * MIB, Buffer.of(0x61, 0xff)) },
};

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  const routes = Object.fromEntries(
    Object.entries(pages).map(([path, { type, body }]) => [
      path,
      (_request: unknown, response: ServerResponse) => {
        response.writeHead(200, { 'content-type': type }).end(body);
      },
    ]),
  );
  const rule = `Disallow: /${'é'.repeat(1_000)}\n`;
  site = stack.use(await startSite({ routes, robotsTxt: `User-agent: *\n${rule.repeat(255)}` }));
  app = stack.use(await startApp());
});

afterAll(() => stack.disposeAsync());

/** Sends a GET and drops what comes. Resolves with the length of the reply and its type. */
function lengthOf(path: string): Promise<{ length: number; type: string | undefined }> {
  return new Promise((resolve, reject) => {
    get(app.url + path, (response) => {
      let length = 0;
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
      });
      response.on('end', () => resolve({ length, type: response.headers['content-type'] }));
      response.on('error', reject);
    }).on('error', reject);
  });
}

const inline = (path: string, parameters = ''): string =>
  `/?token=${NORMAL}&url=${encodeURIComponent(site.url + path)}${parameters}`;

test.each([
  ['an inline page that is six times as long in JSON', '/long-in-json', '&format=json', 28 * MIB],
  ['an inline page in base64', '/bytes', '&format=json', 11 * MIB],
  ['inline JSON of millions of objects', '/json', '', 8 * MIB],
  ['inline JSON that is taken for data', '/json', '&autoparse=true', 8 * MIB],
])('%s', async (_, path, parameters, least) => {
  await lengthOf(inline('/page/1?size=100000', parameters));
  using measured = measureIterations();
  const { length } = await lengthOf(inline(path, parameters));
  expect(length).toBeGreaterThan(least);
  expect(measured.takeLongestMs()).toBeLessThan(LONGEST_MS);
});

test('JSON keeps its type, however long', async () => {
  expect(await lengthOf(inline('/json'))).toMatchObject({ type: 'application/json' });
});

test('a stored page that is six times as long in JSON', async () => {
  const hog = await createCrawler(app, 'stores');
  const rid = await hog.push(`${site.url}/long-in-json`);
  const path = `/storage?token=${NORMAL}&rid=${rid}&format=json`;
  await eventually(async () => expect((await lengthOf(path)).length).toBeGreaterThan(28 * MIB));
  using measured = measureIterations();
  await lengthOf(path);
  expect(measured.takeLongestMs()).toBeLessThan(LONGEST_MS);
});

test('a robots.txt whose rules all have to be encoded', async () => {
  const hog = await createCrawler(app, 'polite', { politeness: { robots_txt: true } });
  using measured = measureIterations();
  await hog.stored(await hog.push(`${site.url}/page/1`));
  expect(site.hits('/robots.txt')).toBe(1);
  expect(measured.takeLongestMs()).toBeLessThan(LONGEST_MS);
});
