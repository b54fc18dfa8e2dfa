import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NORMAL, startApp, type TestApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { type RawReply, rawRequest } from '../support/raw-http.ts';
import { type Site, startSite } from '../support/site.ts';

// What the public SDKs of other languages send, as recorded on the wire, and what their code reads of the reply.

let app: TestApp;
let site: Site;
/** A stored page of `/page/7`. */
let rid: string;

beforeAll(async () => {
  site = await startSite({
    routes: {
      '/shop': (_request, response) =>
        void response
          .writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
          .end('<title>Shop</title><h1>Grüße</h1>sales@shop.example'),
    },
  });
  app = await startApp();
  const crawler = await createCrawler(app, 'kept');
  rid = await crawler.push(`${site.url}/page/7`);
  await crawler.stored(rid);
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
});

/** The headers of each client's requests, in its order and spelling. */
const clients = {
  python: ['Host: api.crawlbase.com', 'User-Agent: Python-urllib/3.11', 'Accept-Encoding: gzip'],
  php: ['Host: api.crawlbase.com', 'Accept: */*', 'Accept-Encoding: gzip,deflate'],
  ruby: [
    'Accept-Encoding: gzip;q=1.0,deflate;q=0.6,identity;q=0.3',
    'Accept: */*',
    'User-Agent: Ruby',
    'Host: api.crawlbase.com',
  ],
  java: [
    'User-Agent: Java/17.0.15',
    'Host: api.crawlbase.com',
    'Accept: text/html, image/gif, image/jpeg, */*; q=0.2',
  ],
  go: [
    'Host: api.crawlbase.com',
    'User-Agent: Go-http-client/1.1',
    'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    'Accept-Encoding: gzip',
  ],
  // Sends neither Accept nor Accept-Encoding, and decompresses nothing.
  net: ['Host: api.crawlbase.com'],
};

type Client = keyof typeof clients;

const encoded = (path: string): string => encodeURIComponent(site.url + path);

async function send(
  client: Client,
  line: string,
  body = '',
  ...headers: string[]
): Promise<RawReply> {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [`${line} HTTP/1.1`, ...clients[client], ...headers, ...length, 'Connection: close'];
  return rawRequest(app.port, `${head.join('\r\n')}\r\n\r\n${body}`);
}

const plain = (reply: RawReply): string => reply.body.toString();
// oxlint-disable-next-line typescript/no-explicit-any -- as the clients parse it
const json = (reply: RawReply): any => JSON.parse(plain(reply));

/** php: an array of headers, whose keys are compared letter by letter. */
const phpJson = (reply: RawReply) =>
  reply.headers.get('Content-Type') === 'application/json; charset=utf-8' ? json(reply) : undefined;

/** python: JSON by the whole value of Content-Type, decompressed by that of Content-Encoding. */
function pythonReads(reply: RawReply) {
  const of = (name: string) =>
    [...reply.headers].find(([each]) => each.toLowerCase() === name.toLowerCase())?.[1];
  const packed = of('Content-Encoding') === 'gzip';
  const body = (packed ? gunzipSync(reply.body) : reply.body).toString();
  if (of('Content-Type') !== 'application/json; charset=utf-8') {
    return { pc_status: of('pc_status'), url: of('url'), stored_at: of('stored_at'), body };
  }
  const parsed = JSON.parse(body);
  // Raises KeyError where one of them is missing.
  if ('original_status' in parsed)
    expect(Object.keys(parsed)).toEqual(expect.arrayContaining(['pc_status', 'url']));
  return { json: parsed.body ?? parsed };
}

/** java: Jackson's map of strings, which takes scalars and nothing else. */
function javaMap(reply: RawReply): Record<string, string> {
  for (const [name, value] of Object.entries(json(reply))) {
    expect([name, typeof value]).not.toEqual([name, 'object']);
  }
  return json(reply);
}

const page7 = /<title>Page 7<\/title>/;

interface Row {
  readonly what: string;
  readonly ask: () => Promise<RawReply>;
  readonly reads: (reply: RawReply) => unknown;
  readonly expected: unknown;
}

const N = `token=${NORMAL}`;
const FORM = 'Content-Type: application/x-www-form-urlencoded';

const rows: Row[] = [
  {
    what: 'python crawls a page',
    ask: () => send('python', `GET /?${N}&url=${encoded('/page/7')}`),
    reads: pythonReads,
    expected: { pc_status: '200', url: /page\/7$/, body: page7 },
  },
  {
    what: 'python scrapes, and looks for the data in body',
    ask: () => send('python', `GET /?${N}&scraper=generic-extractor&url=${encoded('/shop')}`),
    reads: pythonReads,
    expected: { json: { title: 'Shop' } },
  },
  {
    what: 'python ends the query with &',
    ask: () => send('python', `GET /storage/rids?${N}&`),
    reads: json,
    expected: [/^[0-9a-f]{24}$/],
  },
  {
    what: 'python decompresses a stored page',
    ask: () => send('python', `GET /storage?${N}&format=html&rid=${rid}`),
    reads: pythonReads,
    expected: { pc_status: '200', stored_at: /\+00:00$/, body: page7 },
  },
  {
    what: 'python reads results in bulk',
    ask: () =>
      send(
        'python',
        `POST /storage/bulk?${N}&`,
        `{"rids": ["${rid}"]}`,
        'Content-Type: application/json',
      ),
    reads: (reply) => {
      const [record] = json(reply);
      return { ...record, body: gunzipSync(Buffer.from(record.body, 'base64')).toString() };
    },
    expected: { rid: /./, pc_status: 200, stored_at: /\+00:00$/, body: page7 },
  },
  {
    what: 'python asks the leads API',
    ask: () => send('python', `GET /leads?${N}&domain=${encodeURIComponent(site.host)}`),
    reads: pythonReads,
    expected: { json: { success: true, leads: [] } },
  },
  {
    what: 'php finds the rid of an asynchronous crawl',
    ask: () => send('php', `GET /?${N}&async=1&url=${encoded('/page/1')}`),
    reads: phpJson,
    expected: { rid: /^[0-9a-f]{24}$/ },
  },
  {
    what: 'php posts JSON as its README says',
    ask: () =>
      send('php', `POST /?${N}&post_content_type=json&url=${encoded('/echo')}`, '{"a":"b"}', FORM),
    reads: json,
    expected: { body: '{"a":"b"}', headers: { 'content-type': 'application/json' } },
  },
  {
    what: 'php waits for 100 Continue before it sends 200 KB',
    ask: () =>
      send(
        'php',
        `POST /?${N}&url=${encoded('/echo')}`,
        'x'.repeat(200_000),
        FORM,
        'Expect: 100-continue',
      ),
    reads: (reply) => [reply.status, plain(reply).match(/x{200000}/)?.[0].length],
    // The reply that was recorded first; the other one follows on the same connection.
    expected: [100, 200_000],
  },
  {
    what: 'php counts',
    ask: () => send('php', `GET /storage/total_count?${N}&`),
    reads: phpJson,
    expected: { totalCount: expect.any(Number) },
  },
  {
    what: 'php scrapes',
    ask: () => send('php', `GET /scraper?${N}&url=${encoded('/shop')}`),
    reads: phpJson,
    expected: { pc_status: 200, remaining_requests: expect.any(Number), body: { title: 'Shop' } },
  },
  {
    what: 'php takes a JSON page for a page',
    ask: () => send('php', `GET /?${N}&url=${encoded('/echo')}`),
    reads: (reply) => [phpJson(reply), reply.headers.get('pc_status')],
    expected: [undefined, '200'],
  },
  {
    what: 'ruby sends JSON as text/json',
    ask: () =>
      send(
        'ruby',
        `POST /?${N}&url=${encoded('/echo')}&post_content_type=json`,
        '{"a":"b"}',
        'Content-Type: text/json',
      ),
    reads: json,
    expected: { body: '{"a":"b"}', headers: { 'content-type': 'application/json' } },
  },
  {
    what: 'ruby deletes a result that is not there',
    ask: () => send('ruby', `DELETE /storage?${N}&rid=${'a'.repeat(24)}`),
    reads: (reply) => [reply.status, 'success' in json(reply)],
    expected: [200, false],
  },
  {
    what: 'java calls the host without a path and reads strings',
    ask: () => send('java', `GET /?${N}&url=${encoded('/page/7')}&format=json&get_headers=true`),
    reads: javaMap,
    expected: { original_status: 200, cb_status: 200, url: /page\/7$/, body: page7 },
  },
  {
    what: 'java recognises a push by its only key',
    ask: () =>
      send('java', `GET /?${N}&url=${encoded('/page/7')}&async=true&callback=false&format=json`),
    reads: (reply) => Object.keys(javaMap(reply)),
    expected: ['rid'],
  },
  {
    what: 'java posts a form',
    ask: () => send('java', `POST /?${N}&url=${encoded('/echo')}`, 'a=b+c', FORM, 'charset: utf-8'),
    reads: (reply) => [reply.headers.get('cb_status'), json(reply).body],
    expected: ['200', 'a=b+c'],
  },
  {
    what: 'go reads the rid of a push from the header',
    ask: () => send('go', `GET /?callback=true&crawler=kept&${N}&url=${encoded('/page/7')}`),
    reads: (reply) => reply.headers.get('rid'),
    expected: /^[0-9a-f]{24}$/,
  },
  {
    what: '.NET reads a stored page without decompressing it',
    ask: () => send('net', `GET /storage?${N}&rid=${rid}&format=html`),
    reads: (reply) => [reply.headers.get('stored_at'), plain(reply)],
    expected: [/\+00:00$/, page7],
  },
  {
    what: '.NET writes booleans in its own way',
    ask: () => send('net', `GET /?get_headers=True&url=${encoded('/page/7')}&${N}`),
    reads: (reply) => reply.headers.get('original_content_type'),
    expected: /^text\/html/,
  },
];

test.each(rows)('$what', async ({ ask, reads, expected }) => {
  expect(reads(await ask())).toEqual(matching(expected));
});

/** Regular expressions stand for texts that match, objects for objects that have these members. */
function matching(expected: unknown): unknown {
  if (expected instanceof RegExp) return expect.stringMatching(expected);
  if (Array.isArray(expected)) return expected.map(matching);
  if (typeof expected !== 'object' || expected === null) return expected;
  if ('asymmetricMatch' in expected) return expected;
  const members = Object.entries(expected).map(([name, value]) => [name, matching(value)]);
  return expect.objectContaining(Object.fromEntries(members));
}
