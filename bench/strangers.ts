import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { call, startBench, TOKEN } from './bench-setup.ts';

// Measures how long 10,000 calls of strangers at once delay the calls of a tenant: 100 HTTP/2
// connections send 100 requests each, and 1,000 send 100 each that never end. Their bytes are prepared, so that the sender costs little.
// A tenant reads a crawler every 5 ms; printed is his slowest answer, in quiet and during each burst.
// An argument runs only the kinds whose name holds it: `npm run bench:strangers -- gRPC`.

const CONNECTIONS = 100;
const MANY_CONNECTIONS = 1_000;
const STREAMS = 100;
const BURSTS = 5;
const SAMPLE_MS = 5;
const SETTLE_MS = 1_500;
const LONGEST_BURST_MS = 20_000;

const WRONG = 'authorization';
const KINDS: Readonly<
  Record<string, { path: string; method: string; extra?: [string, string][]; connections?: number }>
> = {
  'GET /healthz': { path: '/healthz', method: 'GET' },
  'REST with a wrong token': {
    path: '/storage/total_count?token=wrong-token-of-nobody',
    method: 'GET',
  },
  'gRPC health check': { path: '/grpc.health.v1.Health/Check', method: 'POST' },
  'gRPC with a wrong token': {
    path: '/queuedcrawler.v1.CrawlerService/ListCrawlers',
    method: 'POST',
    extra: [[WRONG, 'Bearer wrong-token-of-nobody']],
  },
  'gRPC without a message': { path: '/grpc.health.v1.Health/Check', method: 'HALF' },
  '100,000 without a message': {
    path: '/queuedcrawler.v1.CrawlerService/ListCrawlers',
    method: 'HALF',
    connections: MANY_CONNECTIONS,
  },
};

const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(4, 0, 0, Buffer.alloc(0)),
]);

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header as a literal that enters no table (RFC 7541, 6.2.2). */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

function requests(kind: keyof typeof KINDS): Buffer {
  const { path, method, extra = [] } = KINDS[kind] as (typeof KINDS)[string];
  const isCall = method !== 'GET';
  const block = Buffer.concat([
    literal(':method', isCall ? 'POST' : 'GET'),
    literal(':scheme', 'http'),
    literal(':path', path),
    literal(':authority', 'localhost'),
    ...(isCall ? [literal('content-type', 'application/grpc'), literal('te', 'trailers')] : []),
    ...extra.map(([name, value]) => literal(name, value)),
  ]);
  const frames: Buffer[] = [];
  for (let n = 0; n < STREAMS; n += 1) {
    const stream = 2 * n + 1;
    frames.push(frame(1, isCall ? 4 : 5, stream, block));
    if (method === 'POST') frames.push(frame(0, 1, stream, Buffer.alloc(5)));
  }
  return Buffer.concat(frames);
}

/** Sends a burst, and resolves when no more replies come. */
async function sendBurst(port: number, kind: string): Promise<void> {
  const bytes = requests(kind);
  const { connections = CONNECTIONS } = KINDS[kind] ?? {};
  const sockets: Socket[] = [];
  for (let n = 0; n < connections; n += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(PREFACE);
  }
  await wait(500);
  let read = 0;
  for (const socket of sockets) socket.on('data', (chunk) => (read += chunk.byteLength));
  for (const socket of sockets) socket.write(bytes);
  let before = -1;
  for (const end = Date.now() + LONGEST_BURST_MS; before !== read && Date.now() < end; ) {
    before = read;
    await wait(SETTLE_MS);
  }
  for (const socket of sockets) socket.destroy();
}

/** In the process of the strangers: sends a burst for each message, and says when it is over. */
function attack(): void {
  process.on('message', ({ port, kind }: { port: number; kind: string }) => {
    void sendBurst(port, kind).then(() => process.send?.('over'));
  });
}

async function measure(): Promise<void> {
  const only = process.argv[2] ?? '';
  await using bench = await startBench({});
  const { service } = bench;
  const child = fork(new URL(import.meta.url), ['attack']);
  await call(`${service}/crawler/${TOKEN}`, 'POST', { name: 'reads' });

  /** The slowest of the calls that a tenant makes until `done`. */
  async function slowest(done: Promise<unknown>): Promise<number> {
    let isDone = false;
    const ended = done.then(() => {
      isDone = true;
    });
    let slowestMs = 0;
    while (!isDone) {
      const startedAt = performance.now();
      await call(`${service}/crawler/${TOKEN}/reads`, 'GET');
      slowestMs = Math.max(slowestMs, performance.now() - startedAt);
      await wait(SAMPLE_MS);
    }
    await ended;
    return slowestMs;
  }

  await slowest(wait(2_000));
  console.log(`quiet: ${(await slowest(wait(3_000))).toFixed(0)} ms`);
  for (const kind of Object.keys(KINDS)) {
    if (!kind.includes(only)) continue;
    const figures: string[] = [];
    for (let n = 0; n < BURSTS; n += 1) {
      const ended = once(child, 'message');
      child.send({ port: Number(new URL(service).port), kind });
      figures.push((await slowest(ended)).toFixed(0));
    }
    console.log(`${kind}: ${figures.join(', ')} ms`);
  }
  child.disconnect();
}

if (process.argv[2] === 'attack') attack();
else await measure();
