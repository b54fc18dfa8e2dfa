import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// Runs after `npm install`: starts the service once, on a database of its own, and lets it crawl a
// page of itself. What Node compiles for that stays on disk. The first start of a user then takes
// the time and the memory of later ones.

const LIMIT_MS = 60_000;
const POLL_MS = 50;

const project = join(import.meta.dirname, '..');
// The Dockerfile installs before it copies the sources.
if (existsSync(join(project, 'src', 'main.ts'))) {
  try {
    const folder = mkdtempSync(join(tmpdir(), 'queued-crawler-'));
    try {
      await startAndStop(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } catch (error) {
    process.stdout.write(`The service was not compiled in advance: ${String(error)}\n`);
  }
}

/** Starts the service, crawls one page and stops it. Throws when that takes longer than a minute. */
async function startAndStop(folder: string): Promise<void> {
  const token = randomBytes(24).toString('base64url');
  // Nothing else of the environment: it may name the database of a service in use.
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  const manifest = readFileSync(join(project, 'package.json'), 'utf8');
  const { scripts } = JSON.parse(manifest) as { scripts: { start: string } };
  const service = spawn('sh', ['-c', scripts.start], {
    cwd: project,
    env: {
      PATH: `${join(project, 'node_modules', '.bin')}:${PATH}`,
      ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
      DATA_DIR: folder,
      PORT: '0',
      LOG_LEVEL: 'error',
      NORMAL_TOKEN: token,
      JAVASCRIPT_TOKEN: `${token}j`,
      NETWORK_ALLOW: '127.0.0.1',
      // The name is that of src/when-orphaned.ts, which is not there before the sources are.
      QUEUED_CRAWLER_STOPS_WITH_PARENT: '1',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const address = Promise.withResolvers<string>();
  let printed = '';
  service.stderr.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
    const found = /Queued crawler: (\S+)/.exec(printed)?.[1];
    if (found !== undefined) address.resolve(found);
  });
  const ended = new Promise<string>((resolve) => {
    service.once('error', (error) => resolve(error.message));
    service.once('close', (code) => resolve(`it ended with code ${code}: ${printed}`));
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => service.kill('SIGTERM'));
  }
  const limit = setTimeout(() => service.kill('SIGKILL'), LIMIT_MS);
  const early = ended.then((reason) => Promise.reject(new Error(reason)));
  try {
    await Promise.race([address.promise.then((url) => crawl(url, token)), early]);
  } finally {
    service.kill('SIGTERM');
    await ended;
    clearTimeout(limit);
  }
}

/** Crawls the service's own `/healthz` to storage. */
async function crawl(base: string, token: string): Promise<void> {
  const json = { 'content-type': 'application/json' };
  const body = JSON.stringify({ name: 'first' });
  await fetch(`${base}/crawler/${token}`, { method: 'POST', headers: json, body });
  const url = `${base}/healthz`;
  const query = new URLSearchParams({ token, crawler: 'first', callback: 'true', url });
  const pushed = await fetch(`${base}/?${query}`);
  const { rid } = (await pushed.json()) as { rid: string };
  const stored = `${base}/storage?${new URLSearchParams({ token, rid })}`;
  while (!(await fetch(stored)).ok) await sleep(POLL_MS);
}
