import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { NORMAL } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { rssOf, type ServiceProcess, startProcess } from '../../support/service-process.ts';
import { type Site, startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// Bulk reads of results that do not fit into one reply: they came out as an error, after they had been removed.

const MIB = 1024 * 1024;
// Seconds on a machine of its own; much is compressed on the way.
const PAGES = 5;
const PAGE_BYTES = 4 * MIB;
const page = randomBytes(PAGE_BYTES);

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let site: Site;
let service: ServiceProcess;
let rids: string[];

beforeAll(async () => {
  folder = await temporaryFolder();
  site = await startSite({
    routes: { '/big': (_, response) => response.end(page) },
  });
  service = await startProcess({ DATA_DIR: folder.path, MEMORY_BUDGET_BYTES: String(128 * MIB) });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await site[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

async function storePages(): Promise<void> {
  rids = await Promise.all(
    Array.from({ length: PAGES }, async (_, n) => {
      const url = encodeURIComponent(`${site.url}/big?${n}`);
      const reply = await fetch(`${service.url}/?token=${NORMAL}&store=true&url=${url}`);
      await reply.arrayBuffer();
      return reply.headers.get('rid') ?? '';
    }),
  );
}

async function stored(): Promise<number> {
  const { json } = await service.rest('GET', `/storage/total_count?token=${NORMAL}`);
  return json.totalCount as number;
}

/** Sends a bulk read and takes at most this number of bytes of its reply; returns what it took. */
function take(body: object, mostBytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${service.url}/storage/bulk?token=${NORMAL}`,
      { method: 'POST', headers: { 'content-type': 'application/json' } },
      (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.byteLength;
          if (length >= mostBytes) response.destroy();
        });
        response.on('close', () => resolve(Buffer.concat(chunks)));
      },
    );
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

describe('over REST', () => {
  beforeAll(storePages);

  test('ten clients that read nothing take one budget', async () => {
    const before = rssOf(service);
    const stalled = Array.from({ length: 10 }, () => {
      const sent = httpRequest(
        `${service.url}/storage/bulk?token=${NORMAL}`,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        (response) => response.pause(),
      );
      sent.on('error', () => undefined).end(JSON.stringify({ rids }));
      return sent;
    });
    try {
      // Not of /readyz, which says 503 when the database of a busy machine takes more than 2 s.
      for (let n = 0; n < 40; n += 1) expect(await stored()).toBe(PAGES);
      expect(rssOf(service) - before).toBeLessThan(350 * MIB);
    } finally {
      for (const sent of stalled) sent.destroy();
    }
  });

  test('a client that leaves amid the reply loses nothing; one that gets all of it empties the storage', async () => {
    for (const most of [1, 4 * PAGE_BYTES]) {
      await take({ rids, auto_delete: true }, most);
      await eventually(async () => expect(await stored()).toBe(PAGES));
    }
    const results = JSON.parse((await take({ rids, auto_delete: true })).toString()) as {
      rid: string;
      body: string;
    }[];
    expect(results.map(({ rid }) => rid)).toEqual(rids);
    expect(Buffer.from(results[PAGES - 1]?.body ?? '', 'base64').byteLength).toBeGreaterThan(
      PAGE_BYTES,
    );
    await eventually(async () => expect(await stored()).toBe(0));
  });
});

describe.each([
  ['gRPC', () => createGrpcTransport({ baseUrl: service.url, acceptCompression: [] })],
  [
    'Connect',
    () =>
      createConnectTransport({ baseUrl: service.url, httpVersion: '1.1', acceptCompression: [] }),
  ],
])('over %s', (_, transport) => {
  test('what one reply does not carry is named, kept, and read by the next calls', async () => {
    await storePages();
    const client = createClient(StorageService, transport());
    const headers = { authorization: `Bearer ${NORMAL}` };
    const read: string[] = [];
    for (let wanted = rids; wanted.length > 0; ) {
      const reply = await client.bulkGetResults({ rids: wanted, autoDelete: true }, { headers });
      const bytes = reply.results.reduce((sum, { body }) => sum + body.byteLength, 0);
      expect(bytes).toBeLessThanOrEqual(16 * MIB);
      expect(reply.results.length).toBeGreaterThan(0);
      read.push(...reply.results.map(({ rid }) => rid));
      await eventually(async () => expect(await stored()).toBe(PAGES - read.length));
      wanted = reply.deferredRids;
    }
    expect(read).toEqual(rids);
  });
});
