import { type ChildProcess, fork, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'undici';

/** The token of the service under test. */
export const TOKEN = 'bench-normal-token';
/** Its JavaScript token. */
export const JAVASCRIPT_TOKEN = 'bench-javascript-token';

const { scripts } = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', 'package.json'), 'utf8'),
) as { scripts: { start: string } };
/** The flags of `npm start`. */
const START_FLAGS = scripts.start.split(' ').filter((word) => word.startsWith('--'));

/** What `npm start` sets for the C library's allocator. */
const START_ENV = Object.fromEntries(
  [...scripts.start.matchAll(/\b(MALLOC_\w+)=(\d+)/g)].map(([, name, value]) => [name, value]),
);

/** A service in a process of its own. */
export interface BenchService extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** What it printed so far. */
  readonly output: string;
  /** Processor seconds that it has used: its main thread, and all its threads. */
  cpuSeconds(): { readonly main: number; readonly all: number };
}

/**
 * Starts the service as `npm start` does (but without its compile cache, unless `env` sets it), with limits of rates and queues out of the way. It uses
 * MONGODB_URI if it is set in `env` or the environment, else an embedded database in a new folder.
 * `folder` is the checkout whose sources it runs; default: this one. `flags` are further ones of Node.
 */
export async function startService(
  env: Readonly<Record<string, string>> = {},
  folder = join(import.meta.dirname, '..'),
  flags: readonly string[] = [],
): Promise<BenchService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'queued-crawler-bench-'));
  const service = spawn(
    process.execPath,
    [...process.execArgv, ...START_FLAGS, ...flags, 'src/main.ts'],
    {
      cwd: folder,
      env: {
        ...process.env,
        ...START_ENV,
        PORT: '0',
        DATA_DIR: dataDir,
        NORMAL_TOKEN: TOKEN,
        JAVASCRIPT_TOKEN,
        NETWORK_ALLOW: '127.0.0.1',
        PUSH_RATE_PER_SECOND: '0',
        ACCOUNT_REQUESTS_PER_SECOND: '0',
        CRAWLER_QUEUE_LIMIT: '10000000',
        ACCOUNT_QUEUE_LIMIT: '10000000',
        PROBE_INTERVAL_SECONDS: '0',
        LOG_LEVEL: 'warn',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  // The address is on standard error; of older versions on standard output.
  for (const stream of [service.stdout, service.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const url = await waitForAddress(service, () => output);
  return {
    url,
    pid: service.pid ?? 0,
    get output() {
      return output;
    },
    cpuSeconds: () => ({
      main: readCpuSeconds(`/proc/${service.pid}/task/${service.pid}/stat`),
      all: readCpuSeconds(`/proc/${service.pid}/stat`),
    }),
    async [Symbol.asyncDispose]() {
      const exited = new Promise((resolve) => service.once('exit', resolve));
      if (service.exitCode === null && service.signalCode === null) {
        service.kill('SIGTERM');
        await exited;
      }
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Sites and receivers of webhooks in one process. */
export interface BenchPeers extends AsyncDisposable {
  readonly pid: number;
  /** Four origins. */
  readonly sites: readonly string[];
  /** Calls `then` with each request for a path below `/start`, and when it came. */
  onStart(then: (path: string, at: number) => void): void;
}

/** Starts peers, those of `file`, in a process of their own. */
export async function startPeers(file = 'peers.ts'): Promise<BenchPeers> {
  const peers = fork(join(import.meta.dirname, file));
  const ports = await new Promise<readonly number[]>((resolve) => {
    peers.once('message', (message) => resolve((message as { ports: number[] }).ports));
  });
  return {
    pid: peers.pid ?? 0,
    sites: ports.map((port) => `http://127.0.0.1:${port}`),
    onStart(then) {
      peers.on('message', (message) => {
        const { path, at } = message as { path: string; at: number };
        then(path, at);
      });
    },
    [Symbol.asyncDispose]: async () => peers.disconnect(),
  };
}

/** The service and its peers, each in its own process. */
export interface Bench extends AsyncDisposable {
  readonly service: string;
  /** The first of `sites`, which is also the receiver of webhooks. */
  readonly peers: string;
  /** Four origins in one process. */
  readonly sites: readonly string[];
  cpuSeconds: BenchService['cpuSeconds'];
}

/** Starts the service and its peers. */
export async function startBench(env: Readonly<Record<string, string>> = {}): Promise<Bench> {
  const peers = await startPeers();
  const service = await startService(env);
  return {
    service: service.url,
    peers: peers.sites[0] ?? '',
    sites: peers.sites,
    cpuSeconds: () => service.cpuSeconds(),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await peers[Symbol.asyncDispose]();
    },
  };
}

/**
 * Reads the seconds in user and kernel mode from a stat file of /proc, which has hundredths of a
 * second.
 */
export function readCpuSeconds(path: string): number {
  const fields = readFileSync(path, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function waitForAddress(service: ChildProcess, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    service.once('exit', (code) =>
      reject(new Error(`the service ended with code ${code}: ${output()}`)),
    );
    for (const stream of [service.stdout, service.stderr]) {
      stream?.on('data', () => {
        const found = /Queued crawler: (\S+)/.exec(output())?.[1];
        if (found !== undefined) resolve(found);
      });
    }
  });
}

/** Calls a REST path with a JSON body. Throws an Error unless the status is 2xx. */
export async function call<Reply>(url: string, method: string, body?: unknown): Promise<Reply> {
  const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(url, { method, ...(body === undefined ? {} : json) });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  return (await response.json()) as Reply;
}

/** Sends `count` GETs over `connections` keep-alive connections. Returns requests per second. */
export async function requestsPerSecond(
  origin: string,
  toPath: (n: number) => string,
  count: number,
  connections: number,
): Promise<number> {
  const pool = new Pool(origin, { connections });
  let next = 0;
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (next < count) {
        const path = toPath(next++);
        const { statusCode, body } = await pool.request({ path, method: 'GET' });
        await body.dump();
        if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}`);
      }
    }),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  await pool.close();
  return count / seconds;
}

/** Prints a result and its ratio to what it is compared with. */
export function report(
  name: string,
  perSecond: number,
  limit?: number,
  limitName = 'the plain limit',
): void {
  const ratio =
    limit === undefined ? '' : `   ${((perSecond / limit) * 100).toFixed(0)} % of ${limitName}`;
  console.log(`${name.padEnd(56)} ${Math.round(perSecond).toString().padStart(8)}/s${ratio}`);
}
