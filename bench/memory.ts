import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { call, startBench, TOKEN } from './bench-setup.ts';

// Measures the resident memory of the service with an empty queue and with 1,000,000 URLs, pushed
// in batches of 1,000 with and without a `request_id`. It reports the maximum during the pushes,
// the value after the last one, and the value half a minute later.
//
// With the argument `flood`: the resident memory before, during and after 200 pages of 9.5 MB that are crawled at once
// with a budget of 1 GiB.

const URLS = Number(process.argv[2] ?? 1_000_000);
const PAGES = 200;
const PAGE = Buffer.alloc(9_500_000, '<p>Some text of a long page.</p>\n');
const BATCH = 1_000;
const CONNECTIONS = 4;
/** Idle crawl threads end after 60 to 90 s; the main thread returns its memory after 60 to 120 s. */
const FREED_MS = 130_000;

/** A metric of `/metrics` in whole MB. */
async function readMegabytes(service: string, metric: string): Promise<number> {
  const text = await (await fetch(`${service}/metrics`)).text();
  const found = new RegExp(`^${metric} (\\S+)$`, 'm').exec(text)?.[1];
  return Math.round(Number(found) / 1_000_000);
}

const readRssMegabytes = (service: string) =>
  readMegabytes(service, 'process_resident_memory_bytes');

async function pushAll(service: string, withRequestId: boolean): Promise<number> {
  const items = Array.from({ length: BATCH }, (_, n) => ({ url: `https://example.com/item/${n}` }));
  let pushed = 0;
  let highest = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (pushed < URLS) {
        pushed += BATCH;
        const body = withRequestId ? { items, request_id: crypto.randomUUID() } : { items };
        await call(`${service}/crawler/${TOKEN}/memory/push_batch`, 'POST', body);
        if (pushed % (URLS / 10) === 0)
          highest = Math.max(highest, await readRssMegabytes(service));
      }
    }),
  );
  return highest;
}

async function flood(): Promise<void> {
  const site = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  const { port } = site.address() as AddressInfo;
  await using bench = await startBench({ MEMORY_BUDGET_BYTES: String(2 ** 30) });
  const { service } = bench;
  const crawler = `${service}/crawler/${TOKEN}/flood`;
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name: 'flood', concurrency: PAGES });
  let pushed = 0;
  async function crawl(count: number): Promise<number> {
    const items = Array.from({ length: count }, () => ({
      url: `http://127.0.0.1:${port}/${(pushed += 1)}`,
    }));
    await call(`${crawler}/push_batch`, 'POST', { items });
    let highest = 0;
    for (let completed = 0; completed < pushed; await delay(100)) {
      highest = Math.max(highest, await readRssMegabytes(service));
      ({ completed } = (await call<{ activity: { completed: number } }>(crawler, 'GET')).activity);
    }
    return highest;
  }
  await crawl(3);
  await delay(4_000);
  const before = await readRssMegabytes(service);
  const highest = await crawl(PAGES);
  await delay(FREED_MS);
  const after = await readRssMegabytes(service);
  console.log(`${PAGES} pages of 9.5 MB at once: ${before} MB before, ${highest} MB at most`);
  console.log(
    `  ${FREED_MS / 1_000} s later: ${after} MB, ${(after / before).toFixed(2)} times of before`,
  );
  site.closeAllConnections();
  site.close();
}

async function main(): Promise<void> {
  if (process.argv[2] === 'flood') return flood();
  for (const withRequestId of [false, true]) {
    await using bench = await startBench();
    const { service } = bench;
    const path = `${service}/crawler/${TOKEN}`;
    await call(path, 'POST', { name: 'memory' });
    await call(`${path}/memory/pause`, 'POST');
    const before = await readRssMegabytes(service);
    const highest = await pushAll(service, withRequestId);
    const after = await readRssMegabytes(service);
    const heap = await readMegabytes(service, 'nodejs_heap_size_used_bytes');
    const external = await readMegabytes(service, 'nodejs_external_memory_bytes');
    await delay(FREED_MS);
    console.log(
      `${URLS.toLocaleString('en')} URLs ${withRequestId ? 'with' : 'without'} request_id`,
    );
    console.log(`  nothing queued: ${before} MB; while pushing: ${highest} MB at most`);
    console.log(`  right after: ${after} MB (heap ${heap}, external ${external})`);
    console.log(`  ${FREED_MS / 1_000} s later: ${await readRssMegabytes(service)} MB`);
  }
}

await main();
