import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import type { CrawlerClient } from '../client/client.ts';
import { getOrInsert } from '../domain/get-or-insert.ts';
import { CliError, tellFailure, usageError } from './cli-error.ts';
import { type CliSettings, clientOf, type GlobalOptions, resolveSettings } from './cli-settings.ts';
import { EXIT_CODE, type ExitCode } from './exit-code.ts';
import { createOutput, type Output, type OutputStream, printable } from './output.ts';

/** What commands have of the process. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Aborted when the user interrupts, or nobody reads the output any more. */
  readonly signal: AbortSignal;
  /** Sets how the process ends, unless a failure does. */
  setExitCode(code: ExitCode): void;
}

/** A command at work: its settings, its client and its output. */
export interface Session extends Disposable {
  readonly settings: CliSettings;
  readonly output: Output;
  readonly signal: AbortSignal;
  /** Says once which service a call waits for, unless the wait is short. */
  readonly tellWait: (failure: unknown, delayMs: number) => void;
  /** Calls with the token of the account. Throws a CliError when it is not set. */
  readonly client: CrawlerClient;
  /** Calls with the admin token. Throws a CliError when it is not set. */
  readonly admin: CrawlerClient;
}

/** Makes a command, with its options, its help and its examples. */
export type CommandFactory = (context: CommandContext) => Command;

/**
 * Calls in all while the service does not answer: a person waits a second, a long run about a
 * minute.
 */
const ATTEMPTS = { person: 3, run: 10 } as const;

/** The shortest wait that a user is told of. */
const TOLD_WAIT_MS = 600;

/**
 * Opens the session of a command that was called. Disposing closes its connections. `isPatient` is
 * for commands that run long.
 */
export async function openSession(
  context: CommandContext,
  command: Command,
  { isPatient = false }: { readonly isPatient?: boolean } = {},
): Promise<Session> {
  const options = command.optsWithGlobals<GlobalOptions>();
  const settings = await resolveSettings(options, context.env);
  const output = createOutput(context.stdout, context.stderr, { json: options.json === true });
  const clients = new Map<string, CrawlerClient>();
  let hasTold = false;

  function tellWait(failure: unknown, delayMs: number): void {
    if (hasTold || delayMs < TOLD_WAIT_MS) return;
    hasTold = true;
    output.note(`waiting: ${printable(tellFailure(failure, settings.url).message)}`);
  }

  function openClient(token: string): CrawlerClient {
    const attempts = isPatient ? ATTEMPTS.run : ATTEMPTS.person;
    return getOrInsert(clients, token, () =>
      clientOf(settings, token, { attempts, onRetry: tellWait }),
    );
  }

  return {
    settings,
    output,
    signal: context.signal,
    tellWait,
    get client() {
      if (settings.token !== undefined) return openClient(settings.token);
      const kind = options.javascript === true ? 'JavaScript token' : 'token';
      throw new CliError(
        `there is no ${kind}: give --token, set QUEUED_CRAWLER_TOKEN, or run "queued-crawler init"`,
        EXIT_CODE.denied,
      );
    },
    get admin() {
      if (settings.adminToken !== undefined) return openClient(settings.adminToken);
      throw noAdminToken();
    },
    [Symbol.dispose]: () => {
      for (const client of clients.values()) client.close();
    },
  };
}

/** The error of a command that needs the admin token. */
export function noAdminToken(): CliError {
  return new CliError(
    'there is no admin token: give --admin-token, set QUEUED_CRAWLER_ADMIN_TOKEN, or run "queued-crawler init"',
    EXIT_CODE.denied,
  );
}

/** Reads a whole number of an option. */
export function wholeNumber(name: string, min: number, max: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw usageError(`${name} must be a whole number from ${min} to ${max}, not "${text}"`);
  };
}

/** Collects the values of an option that may be given several times. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
