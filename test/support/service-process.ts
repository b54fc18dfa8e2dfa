import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { callRest, type RestReply } from './call-rest.ts';
import { logged } from './redaction.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { TEST_SETTINGS } from './test-settings.ts';

const PROJECT = join(import.meta.dirname, '..', '..');

/** The settings that tests share; `env` adds to them. */
function environment(env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return {
    PATH,
    ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
    ...TEST_SETTINGS,
    ...env,
  };
}

/** A started program that prints where the service listens. */
interface Launched {
  readonly process: ChildProcess;
  readonly url: string;
  /** What it printed on standard output so far. */
  readonly output: string;
  /** What it printed on standard error so far. */
  readonly errors: string;
  /** Resolves with the exit code when it and whatever shares its output have ended. */
  readonly ended: Promise<number | null>;
}

/** Starts a program and waits for the line that says where the service listens. Rejects with what it printed when it ends before. */
async function launch(
  [program = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  options: { readonly detached?: boolean; readonly cwd?: string } = {},
): Promise<Launched> {
  const child = spawn(program, args, {
    cwd: PROJECT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  let output = '';
  let errors = '';
  const ended = once(child, 'close').then(([code]) => {
    for (const line of output.split('\n')) if (line.startsWith('{')) logged(line);
    return code as number | null;
  });
  const url = Promise.withResolvers<string>();
  const look = (printed: string): void => {
    const found = /Queued crawler: (\S+)/.exec(printed)?.[1];
    if (found !== undefined) url.resolve(found);
  };
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
    look(errors);
  });
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    look(output);
  });
  ended.then(
    (code) => url.reject(new Error(`exit code ${code}: ${errors}${output}`)),
    (error: unknown) => url.reject(error),
  );
  return {
    process: child,
    url: await url.promise,
    get output() {
      return output;
    },
    get errors() {
      return errors;
    },
    ended,
  };
}

/** The service in a process of its own, as an operator runs it. */
export interface ServiceProcess extends Launched, AsyncDisposable {
  readonly port: number;
  rest(method: string, path: string, body?: unknown): Promise<RestReply>;
  /** Ends it as a crash would. */
  kill9(): Promise<void>;
  /** Asks it to stop; its exit code. */
  terminate(): Promise<number | null>;
}

/** Starts the service with the given environment on a free port, by `launcher` if one is given. Throws, with what it printed, when it does not start. */
export async function startProcess(
  env: Readonly<Record<string, string>>,
  launcher: readonly string[] = [],
  args: readonly string[] = [],
): Promise<ServiceProcess> {
  return startCommand([...launcher, process.execPath, 'src/main.ts', ...args], env);
}

/** Starts the service by `command` with the given environment on a free port, in the folder `cwd`. Throws, with what it printed, when it does not start. */
export async function startCommand(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd = PROJECT,
): Promise<ServiceProcess> {
  const launched = await launch(command, environment({ LOG_LEVEL: 'warn', ...env }), { cwd });
  const { process: child, url, ended } = launched;
  function end(signal: NodeJS.Signals): Promise<number | null> {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return ended;
  }
  return Object.assign(launched, {
    port: Number(new URL(url).port),
    rest: (method: string, path: string, body?: unknown) => callRest(url + path, method, body),
    kill9: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  });
}

/** The service as `npm start` runs it: npm, its shell and the service in a process group of their own. */
export interface NpmStart extends Launched, AsyncDisposable {
  signal(to: 'npm' | 'group', signal: NodeJS.Signals): void;
  rest(method: string, path: string, body?: unknown): Promise<RestReply>;
}

/** Runs `npm start` on a folder of its own; disposing ends all of the group and removes the folder. */
export async function startNpm(): Promise<NpmStart> {
  const folder = await temporaryFolder();
  const env = environment({
    HOME: folder.path,
    npm_config_update_notifier: 'false',
    DATA_DIR: join(folder.path, 'data'),
  });
  const launched = await launch(['npm', 'start'], env, { detached: true });
  const group = -(launched.process.pid ?? 0);
  return Object.assign(launched, {
    signal(to: 'npm' | 'group', signal: NodeJS.Signals) {
      process.kill(to === 'npm' ? -group : group, signal);
    },
    rest: (method: string, path: string, body?: unknown) =>
      callRest(launched.url + path, method, body),
    async [Symbol.asyncDispose]() {
      try {
        process.kill(group, 'SIGKILL');
      } catch {
        // They have ended already.
      }
      await launched.ended;
      await folder[Symbol.asyncDispose]();
    },
  });
}

/** The memory that a service has of the machine now, in bytes. */
export function rssOf(service: ServiceProcess): number {
  const status = readFileSync(`/proc/${service.process.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** The processor time that all threads of a service have used, in milliseconds. */
export function processorMs(service: ServiceProcess): number {
  const stat = readFileSync(`/proc/${service.process.pid}/stat`, 'utf8');
  // Counted from the end of the name, which may contain spaces; in hundredths of a second.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The sum of a metric's samples with those labels, as the service reports it. */
export async function readMetric(
  service: Pick<ServiceProcess, 'rest'>,
  name: string,
  labels = '',
): Promise<number> {
  const { text } = await service.rest('GET', '/metrics');
  const samples = text.matchAll(new RegExp(`^${name}(?:\\{([^}]*)\\})? (\\S+)$`, 'gm'));
  return [...samples]
    .filter(([, found = '']) => found.includes(labels))
    .reduce((sum, [, , value]) => sum + Number(value), 0);
}
