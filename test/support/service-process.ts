import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADMIN, callRest, JAVASCRIPT, NORMAL, type RestReply } from './app.ts';

/** The service in a process of its own, as an operator runs it. */
export interface ServiceProcess extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly process: ChildProcess;
  /** What it printed on standard output so far. */
  readonly output: string;
  /** What it printed on standard error so far. */
  readonly errors: string;
  rest(method: string, path: string, body?: unknown): Promise<RestReply>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Asks it to stop; its exit code. */
  terminate(): Promise<number | null>;
}

/** Starts `npm start`'s command with the given environment on a free port, by `launcher` if one is given. Throws, with what it printed, when it does not start. */
export async function startProcess(
  env: Readonly<Record<string, string>>,
  launcher: readonly string[] = [],
  args: readonly string[] = [],
): Promise<ServiceProcess> {
  const command = [...launcher, process.execPath, 'src/main.ts', ...args];
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd: join(import.meta.dirname, '..', '..'),
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      NORMAL_TOKEN: NORMAL,
      JAVASCRIPT_TOKEN: JAVASCRIPT,
      ADMIN_TOKEN: ADMIN,
      NETWORK_ALLOW: '127.0.0.1',
      PUSH_RATE_PER_SECOND: '0',
      ACCOUNT_REQUESTS_PER_SECOND: '0',
      PROBE_INTERVAL_SECONDS: '0',
      WEBHOOK_ACK_TIMEOUT_MS: '2000',
      LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`exit code ${code}: ${errors}${output}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const found = /Queued crawler: (\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  async function end(signal: NodeJS.Signals): Promise<number | null> {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }
  return {
    url,
    port: Number(new URL(url).port),
    process: child,
    get output() {
      return output;
    },
    get errors() {
      return errors;
    },
    rest: (method, path, body) => callRest(url + path, method, body),
    kill9: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  };
}

/** The memory that a service has of the machine now, in bytes. */
export function rssOf(service: ServiceProcess): number {
  const status = readFileSync(`/proc/${service.process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}
