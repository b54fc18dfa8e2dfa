import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

/** URLs pushed into each of the two crawlers: each page of each shop. */
const SHOPS = 10;
const PAGES = 30;
const URLS = SHOPS * PAGES;
/** This page of each shop asks for less at first. */
const BUSY_PAGE = 20;
const TOKEN = 'demo-normal-token';
const TIMEOUT_MS = 60_000;

interface Activity {
  readonly retrying: number;
  readonly completed: number;
  readonly failed: number;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/**
 * A small shop. Every page takes 30 ms, and one of them responds with 503 to its first request of each
 * crawler. The service then crawls this shop at intervals, which each page in time shortens again. The
 * shops have ports of their own, so that the others are crawled at full speed.
 */
function createShop(): Server {
  const seen = new Set<string>();
  return createServer((request, response) => {
    const path = request.url ?? '/';
    const isBusy = path.endsWith(`/${BUSY_PAGE}`) && !seen.has(path);
    seen.add(path);
    setTimeout(() => {
      response.writeHead(isBusy ? 503 : 200, {
        'content-type': 'text/html; charset=utf-8',
        ...(isBusy ? { 'retry-after': '1' } : {}),
      });
      response.end(`<!doctype html><title>Product ${path}</title><h1>Product ${path}</h1>`);
    }, 30);
  });
}

/** A client's webhook, which acknowledges and counts results. */
function createReceiver(received: Set<string>): Server {
  return createServer((request, response) => {
    void readBody(request).then((body) => {
      const { rid } = request.headers;
      const text =
        request.headers['content-encoding'] === 'gzip' ? gunzipSync(body).toString() : '';
      if (typeof rid === 'string' && text.includes('<h1>Product')) received.add(rid);
      response.writeHead(204).end();
    });
  });
}

async function call<Reply>(url: string, method: string, body?: unknown): Promise<Reply> {
  const response = await fetch(url, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  if (!response.ok)
    throw new Error(`${method} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as Reply;
}

async function startService(dataDir: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const child = spawn(process.execPath, ['src/main.ts'], {
    cwd: join(import.meta.dirname, '..'),
    env: {
      ...process.env,
      PORT: '0',
      DATA_DIR: dataDir,
      MONGODB_URI: '',
      NORMAL_TOKEN: TOKEN,
      NETWORK_ALLOW: '127.0.0.1',
      PUSH_RATE_PER_SECOND: '0',
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) =>
      reject(new Error(`the service ended with code ${code}: ${output}`)),
    );
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const found = /Queued crawler: (\S+)/.exec(output);
      if (found?.[1] !== undefined) resolve(found[1]);
    });
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

async function pushAll(url: string, crawler: string, shops: readonly string[]): Promise<string[]> {
  const pages = Array.from({ length: PAGES }, (_, page) => `${crawler}/${page}`);
  const items = pages.flatMap((page) => shops.map((shop) => ({ url: `${shop}/${page}` })));
  const reply = await call<{ results: { rid: string }[] }>(
    `${url}/crawler/${TOKEN}/${crawler}/push_batch`,
    'POST',
    { items },
  );
  return reply.results.map((result) => result.rid);
}

async function readActivity(url: string, crawler: string): Promise<Activity> {
  const reply = await call<{ activity: Activity }>(`${url}/crawler/${TOKEN}/${crawler}`, 'GET');
  return reply.activity;
}

async function countStored(url: string, rids: readonly string[]): Promise<number> {
  let found = 0;
  for (let from = 0; from < rids.length; from += 100) {
    const page = { rids: rids.slice(from, from + 100), auto_delete: false };
    found += (await call<unknown[]>(`${url}/storage/bulk?token=${TOKEN}`, 'POST', page)).length;
  }
  return found;
}

let shown = '';

/** Shows how far it is, where that has changed. */
function showProgress(webhook: Activity, storage: Activity, delivered: number): void {
  const row = (name: string, { retrying, completed }: Activity): string =>
    `${name}: ${completed}/${URLS} crawled, ${retrying} to retry`;
  const line = `  ${row('webhook', webhook)}, ${delivered} delivered | ${row('storage', storage)}`;
  if (line === shown) return;
  shown = line;
  // A line that the terminal wraps could not be overwritten.
  const fitting = line.slice(0, (process.stdout.columns ?? 80) - 1);
  process.stdout.write(process.stdout.isTTY ? `\r\u001b[2K${fitting}` : `${line}\n`);
}

async function demo(): Promise<void> {
  const received = new Set<string>();
  const shops = Array.from({ length: SHOPS }, createShop);
  const receiver = createReceiver(received);
  const dataDir = await mkdtemp(join(tmpdir(), 'queued-crawler-demo-'));
  const shopUrls = await Promise.all(shops.map(listen));
  const receiverUrl = await listen(receiver);
  const service = await startService(dataDir);
  try {
    console.log(`Service ${service.url}, a webhook ${receiverUrl}`);
    console.log(`${SHOPS} shops to crawl: ${shopUrls[0]} and ${SHOPS - 1} others\n`);
    const path = `${service.url}/crawler/${TOKEN}`;
    await call(path, 'POST', { name: 'to-webhook', callback_url: `${receiverUrl}/hook` });
    await call(path, 'POST', { name: 'to-storage' });
    console.log(`Made two crawlers, one for each delivery mode; pushing ${URLS} URLs into each.`);
    const [hooked, stored] = await Promise.all([
      pushAll(service.url, 'to-webhook', shopUrls),
      pushAll(service.url, 'to-storage', shopUrls),
    ]);
    const deadline = Date.now() + TIMEOUT_MS;
    for (;;) {
      const [webhook, storage] = await Promise.all([
        readActivity(service.url, 'to-webhook'),
        readActivity(service.url, 'to-storage'),
      ]);
      showProgress(webhook, storage, received.size);
      if (received.size === URLS && storage.completed === URLS) break;
      if (Date.now() > deadline) throw new Error('the demo took too long');
      await wait(500);
    }
    const kept = await countStored(service.url, stored);
    const arrived = hooked.filter((rid) => received.has(rid)).length;
    console.log('\n');
    console.log(`Webhook crawler: ${URLS} pushed, ${arrived} arrived at the webhook.`);
    console.log(`Storage crawler: ${URLS} pushed, ${kept} in storage.`);
    console.log(`One page in ${PAGES} had answered 503 first and was tried again by the service.`);
    if (arrived !== URLS || kept !== URLS) throw new Error('something is missing');
  } finally {
    await service.stop();
    for (const server of [...shops, receiver]) {
      server.close();
      server.closeAllConnections();
    }
    await rm(dataDir, { recursive: true, force: true });
  }
}

demo().catch((error: unknown) => {
  console.error(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
});
