import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readdirSync, readlinkSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { MongoClient } from 'mongodb';
import { eventually } from './eventually.ts';
import { freePort } from './listen.ts';

const FREED_MS = 60_000;

/** A MongoDB server of the tests' own. */
export interface Mongod extends AsyncDisposable {
  readonly uri: string;
  /** Where its data are. */
  readonly folder: string;
  /** What it said last if it ended by itself. */
  readonly crash: string | undefined;
  /** Stops it in good order. */
  stop(): Promise<void>;
  /** Kills it as a crash would. */
  kill(): Promise<void>;
  /** Lets it answer nothing until it is resumed; its connections stay open. */
  suspend(): void;
  resume(): void;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
}

/** The program that would be started: `MONGOD`, or `mongod` on PATH; undefined without both. */
export function mongodProgram(): string | undefined {
  const named = process.env.MONGOD ?? '';
  if (named !== '') return named;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.map((folder) => join(folder, 'mongod')).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Kills the processes that a killed server has left behind. A crash ends them too, and as long as
 * one of them works in the data's folder no other server starts there. Returns when the last has
 * gone.
 */
function killWorkers(folder: string): Promise<void> {
  return eventually(
    () => {
      const left = workersIn(folder);
      for (const pid of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // It ended by itself.
        }
      }
      if (left.length > 0) throw new Error(`still there: ${left.join(', ')}`);
    },
    { timeoutMs: FREED_MS, what: 'the end of all processes of a killed server' },
  );
}

/** The processes whose working directory is in the folder; none where there is no /proc. */
function workersIn(folder: string): number[] {
  try {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.filter((pid) => workingDirectory(pid).startsWith(`${folder}/`)).map(Number);
  } catch {
    return [];
  }
}

function workingDirectory(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has ended, or is a zombie.
    return '';
  }
}

/** Makes the server the primary of a replica set of its own. */
async function initiate(port: number): Promise<void> {
  const host = `127.0.0.1:${port}`;
  await using client = new MongoClient(`mongodb://${host}/?directConnection=true`);
  const admin = client.db('admin');
  const hello = () => admin.command({ hello: 1 });
  const { setName, msg } = await hello();
  if (setName === undefined && msg !== 'isdbgrid') {
    const config = { _id: 'rs0', members: [{ _id: 0, host }] };
    await admin.command({ replSetInitiate: config });
  }
  await eventually(
    async () => {
      if (!(await hello()).isWritablePrimary) throw new Error('not yet');
    },
    { timeoutMs: FREED_MS, what: 'a primary' },
  );
}

/** Starts a server on a new folder, with what is in `data` if that is given; the folder is removed when it is disposed. */
export async function startMongod(program: string, data?: string): Promise<Mongod> {
  const folder = await mkdtemp(join(tmpdir(), 'queued-crawler-mongod-'));
  if (data !== undefined) await cp(data, folder, { recursive: true, preserveTimestamps: true });
  const port = await freePort();
  let child: ChildProcess | undefined;
  let crash: string | undefined;

  /** What a killed server has left is in use until its last process has ended. */
  const start = (): Promise<void> =>
    eventually(startOnce, { timeoutMs: FREED_MS, what: 'a MongoDB server that starts' });

  async function startOnce(): Promise<void> {
    const address = ['--port', String(port), '--bind_ip', '127.0.0.1'];
    const args = ['--dbpath', folder, ...address, '--replSet', 'rs0'];
    const started = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    child = started;
    crash = undefined;
    let errors = '';
    started.stderr.on('data', (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-2_000);
    });
    await new Promise<void>((resolve, reject) => {
      started.once('error', reject);
      started.once('exit', (code, signal) => {
        const end = `mongod ended with ${signal ?? code}: ${errors}`;
        if (child === started) crash = end;
        reject(new Error(end));
      });
      createInterface(started.stdout).on('line', (line) => {
        if (line.includes('Waiting for connections')) resolve();
      });
    });
    await initiate(port);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const running = child;
    child = undefined;
    if (running === undefined || running.exitCode !== null) return;
    const exited = new Promise((resolve) => running.once('exit', resolve));
    running.kill(signal);
    await exited;
    if (signal === 'SIGKILL') await killWorkers(folder);
  }

  await start();
  return {
    uri: `mongodb://127.0.0.1:${port}`,
    folder,
    get crash() {
      return crash;
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
    suspend: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    start,
    async [Symbol.asyncDispose]() {
      await end('SIGTERM');
      await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    },
  };
}
