import { createServer } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { crawlInBrowser } from '../support/browser-crawls.ts';
import { listen } from '../support/listen.ts';

// Responses that break rules of HTTP are taken as Chromium takes them.

const BODY = '<!doctype html><p>shown</p>';
const LENGTH = `content-length: ${BODY.length}`;
const TYPE = 'content-type: text/html';
const CHUNKS = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;

const page = (...lines: string[]): string =>
  ['HTTP/1.1 200 OK', 'connection: close', TYPE, ...lines, '', BODY].join('\r\n');
const wide = (bytes: number): string[] => [
  LENGTH,
  ...Array.from({ length: bytes / 1_000 }, (_, n) => `x-${n}: ${'v'.repeat(990)}`),
];

const RESPONSES: Readonly<Record<string, string>> = {
  'headers of 17 KB': page(...wide(17_000)),
  'headers of 60 KB': page(...wide(60_000)),
  'a header on two lines': page(LENGTH, 'x-folded: one', '  two'),
  'a space before the colon': page(LENGTH, 'x-spaced : value'),
  'a line without a colon': page(LENGTH, 'no colon here'),
  'lines that end in LF': page(LENGTH).replaceAll('\r\n', '\n'),
  'the same length twice': page(LENGTH, LENGTH),
  'a length and chunks': page('content-length: 5', 'transfer-encoding: chunked').replace(
    BODY,
    CHUNKS,
  ),
  'a control character in a header': page(LENGTH, 'x-control: a\x01b'),
  'bytes that are not ASCII in a header': page(LENGTH, 'x-latin: \xe9\xff'),
  'the status line of Icecast': page(LENGTH).replace('HTTP/1.1', 'ICY'),
  'a status line without a reason': page(LENGTH).replace('200 OK', '200'),
  '100 Continue that nobody asked for': `HTTP/1.1 100 Continue\r\n\r\n${page(LENGTH)}`,
  '103 Early Hints': `HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n${page(LENGTH)}`,
  'a body that is cut short': page('content-length: 1000'),
  'chunks that are cut short': page('transfer-encoding: chunked').replace(
    BODY,
    CHUNKS.slice(0, -5),
  ),
  'headers of 200 KB': page(...wide(200_000)),
  'bytes after the body': `${page(LENGTH)}more`,
};

let app: TestApp;
let site: Awaited<ReturnType<typeof listen>>;

beforeAll(async () => {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (request) => {
      const index = Number(/^GET \/(\d+)/.exec(request.toString('latin1'))?.[1]);
      socket.end(Object.values(RESPONSES)[index] ?? '', 'latin1');
    });
  });
  site = await listen(server);
  app = await startApp({ env: { NETWORK_ALLOW: '127.0.0.1' } });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

test.each(Object.keys(RESPONSES).map((name, index) => [name, index] as const))(
  'a page with %s is shown',
  async (_, index) => {
    const result = await crawlInBrowser(app, `http://127.0.0.1:${site.port}/${index}`);
    expect(result).toMatchObject({ cb_status: 200 });
    expect(result.body).toContain('<p>shown</p>');
  },
);

test('what is no HTTP fails', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end('SSH-2.0-OpenSSH_9.6\r\n'));
  });
  await using other = await listen(server);
  const result = await crawlInBrowser(app, `http://127.0.0.1:${other.port}/`);
  expect(result).toMatchObject({ original_status: 0, failure: 'protocol_error' });
});
