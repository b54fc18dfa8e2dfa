import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ListCrawlersRequestSchema,
  ListCrawlersResponseSchema,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { createCrawlerClient, describeFailure } from '../../src/client/client.ts';
import { NORMAL, type TestApp } from '../support/app.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startTlsApp } from '../support/tls-app.ts';
import { TLS_FIXTURE } from '../support/tls-fixture.ts';

// What clients get that offer HTTP/2, HTTP/1.1 or both over TLS.

const run = promisify(execFile);
const buf = join(
  dirname(createRequire(import.meta.url).resolve('@bufbuild/buf/package.json')),
  'bin/buf',
);

function hasCurl(): boolean {
  try {
    const features = execFileSync('curl', ['--version'], { encoding: 'utf8' });
    if (/\bHTTP2\b/.test(features)) return true;
  } catch {
    // Not installed.
  }
  process.stderr.write('SKIPPED: curl over TLS, for there is no curl with HTTP/2 here\n');
  return false;
}

let app: TestApp;
let site: Site;
let folder: AsyncDisposable & { readonly path: string };
let certificate: string;

beforeAll(async () => {
  site = await startSite();
  folder = await temporaryFolder();
  certificate = join(folder.path, 'ca.pem');
  await writeFile(certificate, TLS_FIXTURE.cert);
  app = await startTlsApp();
  await over('POST', `/crawler/${NORMAL}`, { name: 'tls' });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

interface Http2Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

async function withSession<Value>(
  use: (session: ClientHttp2Session) => Promise<Value>,
): Promise<Value> {
  const session = connect(`https://localhost:${app.port}`, { ca: TLS_FIXTURE.cert });
  try {
    return await use(session);
  } finally {
    session.destroy();
  }
}

/** Calls REST over HTTP/2. Rejects with the code of a reset. */
function over(
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Http2Reply> {
  return withSession(
    (session) =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':method': method, ':path': path, ...headers });
        const chunks: Buffer[] = [];
        let head: Readonly<Record<string, unknown>> = {};
        stream.on('response', (received) => (head = received));
        stream.on('data', (chunk: Buffer) => chunks.push(chunk));
        stream.on('error', () => undefined);
        stream.on('close', () => {
          if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) reject(stream.rstCode);
          else {
            const status = Number(head[':status']);
            resolve({ status, headers: head, body: Buffer.concat(chunks) });
          }
        });
        stream.end(body === undefined ? undefined : JSON.stringify(body));
      }),
  );
}

describe('REST over HTTP/2', () => {
  test('answers as over HTTP/1.1', async () => {
    const page = encodeURIComponent(`${site.url}/page/3`);
    const html = await over('GET', `/?token=${NORMAL}&url=${page}`);
    expect(html).toMatchObject({ status: 200, headers: { cb_status: '200' } });
    expect(html.body.toString()).toContain('Page 3');
    const missing = await over('GET', `/storage?token=${NORMAL}&rid=${'a'.repeat(24)}`);
    expect(missing.status).toBe(404);
    expect(JSON.parse(missing.body.toString())).toMatchObject({ code: 'rid_not_found' });
    const stored = await over('POST', `/storage/bulk?token=${NORMAL}`, { rids: ['x'] });
    expect([stored.status, stored.body.toString()]).toEqual([200, '[]']);
  });

  test('only the client that compares header names is sent to HTTP/1.1', async () => {
    const path = `/storage/total_count?token=${NORMAL}`;
    const php = { accept: '*/*', 'accept-encoding': 'gzip,deflate' };
    await expect(over('GET', path, undefined, php)).rejects.toBe(
      constants.NGHTTP2_HTTP_1_1_REQUIRED,
    );
    for (const others of [
      {},
      { ...php, 'user-agent': 'curl/8.0.0' },
      { ...php, 'accept-encoding': 'deflate, gzip' },
      { ...php, accept: 'application/json' },
    ]) {
      expect((await over('GET', path, undefined, others)).status).toBe(200);
    }
  });
});

describe('a client that offers both', () => {
  test('buf curl: reflection, and a stream of both directions', async () => {
    const call = async (method: string, input: string): Promise<unknown> => {
      const address = `https://localhost:${app.port}/queuedcrawler.v1.${method}`;
      const args = ['--cacert', certificate, '--protocol', 'grpc', '-d', input];
      const header = ['-H', `authorization: Bearer ${NORMAL}`];
      const { stdout } = await run(buf, ['curl', ...args, ...header, address]);
      return JSON.parse(stdout);
    };
    expect(await call('CrawlerService/GetCrawler', '{"name":"tls"}')).toMatchObject({
      crawler: { name: 'tls' },
    });
    const request = { crawler: 'tls', items: [{ url: `${site.url}/page/1` }] };
    const pushed = await call('PushService/PushStream', JSON.stringify(request));
    expect(pushed).toMatchObject({ results: [{ rid: expect.stringMatching(/^[0-9a-f]{24}$/) }] });
  });

  test.runIf(hasCurl())('curl, and the PHP SDK by its headers', async () => {
    const path = `https://localhost:${app.port}/storage/bulk?token=${NORMAL}`;
    const curl = async (...args: string[]): Promise<string> => {
      const how = ['-sS', '--cacert', certificate, '-o', '-', '-D', '-'];
      return (await run('curl', [...how, ...args, path])).stdout;
    };
    const body = ['-H', 'Content-Type: application/json', '--data', '{"rids":["x"]}'];
    expect(await curl(...body)).toMatch(/^HTTP\/2 200/);
    const php = ['-H', 'User-Agent:', '-H', 'Accept-Encoding: gzip,deflate'];
    const reply = await curl(...php, ...body);
    expect(reply).toMatch(/^HTTP\/1\.1 200/);
    // The spelling and the value that it compares with.
    expect(reply).toContain('\r\nContent-Type: application/json; charset=utf-8\r\n');
    await writeFile(join(folder.path, 'long.json'), `{"rids":["x"]${' '.repeat(60_000)}}`);
    const long = ['--data-binary', `@${join(folder.path, 'long.json')}`];
    expect(await curl(...php, ...body.slice(0, 2), ...long)).toMatch(/^HTTP\/1\.1 200[^]*\[\]$/);
  });
});

test('grpc-js, which offers HTTP/2 alone', async () => {
  const client = new Client(
    `localhost:${app.port}`,
    credentials.createSsl(Buffer.from(TLS_FIXTURE.cert)),
  );
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${NORMAL}`);
  const reply = await new Promise<Buffer | undefined>((resolve, reject) => {
    client.makeUnaryRequest(
      '/queuedcrawler.v1.CrawlerService/ListCrawlers',
      (message: Uint8Array) => Buffer.from(message),
      (bytes) => bytes,
      toBinary(ListCrawlersRequestSchema, create(ListCrawlersRequestSchema)),
      metadata,
      (error, value) => (error === null ? resolve(value) : reject(error)),
    );
  });
  client.close();
  const { crawlers } = fromBinary(ListCrawlersResponseSchema, reply ?? Buffer.alloc(0));
  expect(crawlers.map(({ name }) => name)).toEqual(['tls']);
});

test('the client of the project says that a certificate is not accepted', async () => {
  const baseUrl = `https://localhost:${app.port}`;
  await using trusting = createCrawlerClient({ baseUrl, token: NORMAL, ca: TLS_FIXTURE.cert });
  expect((await trusting.crawlers.listCrawlers({})).crawlers).toHaveLength(1);
  await using client = createCrawlerClient({ baseUrl, token: NORMAL });
  const failure = await client.crawlers.listCrawlers({}).catch(describeFailure);
  expect(failure).toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/^The certificate of the service is not accepted \(self-signed/),
  });
});

test('TLS_PREFERRED=http/1.1 gives HTTP/1.1 to clients that offer both', async () => {
  await using other = await startTlsApp({ TLS_PREFERRED: 'http/1.1' });
  const socket = connectTls({
    host: 'localhost',
    port: other.port,
    ca: TLS_FIXTURE.cert,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  await once(socket, 'secureConnect');
  expect(socket.alpnProtocol).toBe('http/1.1');
  socket.destroy();
});
