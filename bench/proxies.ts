import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { call, startService, TOKEN } from './bench-setup.ts';
import { pages } from './page-text.ts';

// Measures a pool of 1,000 proxies of which 30 % fail, next to one of which none fails. It prints the
// pages a second until 95 % have ended, the URLs that were lost or failed, and the tries of a proxy within its first
// cool-down. A proxy fails in one of six ways, by `--seed`. All proxies are addresses of one server, and this
// process is site and proxies. `--pages N`, `--concurrency N`.

const FAULTS = ['login', 'closes', 'page', 'refuses', 'silent', 'closed port'] as const;
type Fault = (typeof FAULTS)[number];
const PROXIES = 1_000;
const FAILING = 0.3;
/** The shortest cool-down, less what a try takes to arrive. */
const COOL_DOWN_MS = 4_900;
/**
 * What was in flight when the service learned of a failure. While its threads start, or on a busy
 * machine, up to 2.9 s pass between the choice of a proxy and its answer.
 */
const IN_FLIGHT_MS = 3_500;
const LONGEST_MS = 90_000;
const BATCH = 1_000;
/**
 * The part of the pages whose pace is measured. The last ones wait for silent proxies, 10 s each, and for
 * second retries, after 5 s, however fast the service is.
 */
const MOST = 0.95;

const addressOf = (n: number): string => `127.7.${Math.floor(n / 250)}.${1 + (n % 250)}`;

/** xorshift32 */
function createRandom(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** Serves all addresses; `faults` has those that fail. */
async function startProxies(faults: ReadonlyMap<string, Fault>) {
  const failedAt = new Map<string, number>();
  const sockets = new Set<Socket>();
  const startedAt = performance.now();
  const tooEarly: string[] = [];
  let tries = 0;

  function failing(socket: Socket, address: string, fault: Fault): void {
    tries += 1;
    const sinceMs = performance.now() - (failedAt.get(address) ?? Number.NEGATIVE_INFINITY);
    if (fault === 'silent') return;
    // A single refusal may be the doing of the target.
    if (fault !== 'refuses' && sinceMs > IN_FLIGHT_MS && sinceMs < COOL_DOWN_MS) {
      const atMs = performance.now() - startedAt;
      tooEarly.push(
        `${fault} ${sinceMs.toFixed(0)} ms after the one before, at ${atMs.toFixed(0)} ms`,
      );
    }
    if (!failedAt.has(address) || sinceMs >= COOL_DOWN_MS) failedAt.set(address, performance.now());
    if (fault === 'closes') socket.destroy();
    else if (fault === 'page') socket.end('HTTP/1.1 200 OK\r\n\r\n<p>Pay here</p>');
    else if (fault === 'login') socket.end('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n');
    else socket.end('HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n');
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    const address = socket.localAddress ?? '';
    const fault = faults.get(address);
    socket.once('data', (head: Buffer) => {
      if (fault !== undefined) return failing(socket, address, fault);
      const [, host, port] = /^CONNECT ([\d.]+):(\d+)/.exec(head.toString('latin1')) ?? [];
      const upstream = connect(Number(port), host ?? '', () => {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        socket.pipe(upstream).pipe(socket);
      });
      upstream.on('error', () => socket.destroy());
      socket.once('close', () => upstream.destroy());
    });
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    counts: () => ({ tooEarly, tries }),
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function measure(
  faults: ReadonlyMap<string, Fault>,
  { count, concurrency }: { readonly count: number; readonly concurrency: number },
) {
  let seen = 0;
  const site = createHttpServer((_request, response) => {
    seen += 1;
    response.setHeader('content-type', 'text/html').end(pages[seen % pages.length]);
  });
  site.listen(0, '0.0.0.0');
  await once(site, 'listening');
  const { port } = site.address() as AddressInfo;
  const proxies = await startProxies(faults);
  const urls = Array.from({ length: PROXIES }, (_, n) => {
    const address = addressOf(n);
    return `http://user:password@${address}:${faults.get(address) === 'closed port' ? 9 : proxies.port}`;
  });
  try {
    await using service = await startService({
      NETWORK_ALLOW: '127.0.0.0/8',
      PROXIES: JSON.stringify({ many: urls }),
      LOG_LEVEL: 'error',
    });
    const crawler = `${service.url}/crawler/${TOKEN}/proxied`;
    await call(`${service.url}/crawler/${TOKEN}`, 'POST', {
      name: 'proxied',
      concurrency,
      proxy: 'many',
    });
    await call(`${crawler}/pause`, 'POST');
    for (let at = 0; at < count; at += BATCH) {
      const items = Array.from({ length: BATCH }, (_, n) => ({
        url: `http://127.1.0.${1 + (n % 200)}:${port}/${at + n}`,
      }));
      await call(`${crawler}/push_batch`, 'POST', { items });
    }
    const startedAt = performance.now();
    let mostMs = 0;
    await call(`${crawler}/unpause`, 'POST');
    for (;;) {
      await wait(100);
      const details = (await (await fetch(crawler)).json()) as {
        activity: { completed: string; failed: string };
      };
      const { completed, failed } = details.activity;
      const ended = Number(completed) + Number(failed);
      const ms = performance.now() - startedAt;
      if (ended < count * MOST) mostMs = ms;
      if (ended < count && ms < LONGEST_MS) continue;
      return {
        pagesPerSecond: (count * MOST * 1_000) / mostMs,
        wholeMs: ms,
        lost: count - ended,
        failed: Number(failed),
        ...proxies.counts(),
      };
    }
  } finally {
    site.closeAllConnections();
    site.close();
    proxies.close();
  }
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(0)} s`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      pages: { type: 'string', default: '10000' },
      concurrency: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
    },
  });
  const size = { count: Number(values.pages), concurrency: Number(values.concurrency) };
  const random = createRandom(Number(values.seed));
  const faults = new Map<string, Fault>();
  for (let n = 0; n < PROXIES; n += 1) {
    const fault = FAULTS[Math.floor(random() * FAULTS.length)] ?? 'closes';
    if (random() < FAILING) faults.set(addressOf(n), fault);
  }
  const good = await measure(new Map(), size);
  console.log(
    `no proxy fails: ${good.pagesPerSecond.toFixed(0)} pages/s, all after ${seconds(good.wholeMs)}, ${good.lost} lost`,
  );
  const bad = await measure(faults, size);
  console.log(
    `${faults.size} of ${PROXIES} fail: ${bad.pagesPerSecond.toFixed(0)} pages/s ` +
      `(${(bad.pagesPerSecond / good.pagesPerSecond).toFixed(2)}), all after ${seconds(bad.wholeMs)}, ${bad.lost} lost, ${bad.failed} failed, ` +
      `${bad.tries} tries of proxies that fail, ${bad.tooEarly.length} within a cool-down`,
  );
  for (const each of bad.tooEarly) console.log(each);
}

await main();
