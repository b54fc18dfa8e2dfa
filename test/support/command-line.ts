import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { EXIT_CODE } from '../../src/cli/exit-code.ts';
import { runProgram } from '../../src/cli/run-program.ts';
import { isLong } from './length.ts';

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'queued-crawler.js');

/** How the program is called. */
export interface CommandLineOptions {
  /** The whole environment except PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** Standard input; none by default. */
  readonly input?: string | Iterable<string> | AsyncIterable<string>;
}

/** What the program printed and how it ended. */
export interface CommandLineEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The lines of standard output as JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read output of many shapes
  readonly json: any[];
}

/** The program at work. */
export interface CommandLine extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly stdout: string;
  readonly stderr: string;
  /** The most memory that it had of the machine so far, in bytes; 0 when it has ended. */
  peakBytes(): number;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<CommandLineEnd>;
}

/** Starts `queued-crawler` as a user does, in a process of its own. */
export function startCommandLine(
  args: readonly string[],
  { env, input }: CommandLineOptions,
): CommandLine {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const cache = NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { PATH, ...cache, ...env },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  if (input !== undefined && child.stdin !== null) {
    const source = Readable.from(typeof input === 'string' ? [input] : input);
    // The program may end before it has read everything.
    pipeline(source, child.stdin).catch(() => undefined);
  }
  const ended = once(child, 'close').then(([code]) => toEnd(code as number | null, stdout, stderr));
  return {
    process: child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    peakBytes() {
      const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
    },
    kill: (signal) => void child.kill(signal),
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/**
 * Runs it to its end: at full length in a process, otherwise in this one, which takes a tenth of the
 * time.
 */
export async function runCommandLine(
  args: readonly string[],
  options: CommandLineOptions,
): Promise<CommandLineEnd> {
  if (!isLong) return runHere(args, options);
  await using program = startCommandLine(args, options);
  return await program.ended;
}

async function runHere(
  args: readonly string[],
  { env, input = '' }: CommandLineOptions,
): Promise<CommandLineEnd> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const printed = Promise.all([text(stdout), text(stderr)]);
  let code: number = EXIT_CODE.ok;
  await runProgram(args, {
    env,
    stdin: Readable.from(typeof input === 'string' ? [input] : input),
    stdout,
    stderr,
    signal: new AbortController().signal,
    setExitCode(set) {
      code = set;
    },
  });
  stdout.end();
  stderr.end();
  return toEnd(code, ...(await printed));
}

function toEnd(code: number | null, stdout: string, stderr: string): CommandLineEnd {
  return {
    code,
    stdout,
    stderr,
    get json() {
      const lines = stdout.split('\n').filter((line) => line !== '');
      return lines.map((line) => JSON.parse(line) as unknown);
    },
  };
}
