import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { defined } from '../domain/defined.ts';
import { errorText } from '../domain/error-text.ts';
import { DomainError, type ErrorKind } from '../domain/errors.ts';
import { fileFailure } from '../domain/file-failure.ts';
import { type BackupContent, checkBackup } from './check-backup.ts';
import { assertBackupTarget } from './usable-path.ts';
import { type BackupProgress, sync } from './write-backup.ts';

/** What becomes of a backup that a running service makes. */
export type FetchProgress =
  | BackupProgress
  | { readonly step: 'fetch'; readonly bytes: number; readonly of: number };

/** The progress for a person. */
export function progressText(progress: FetchProgress): string {
  switch (progress.step) {
    case 'copy':
      return `${progress.copied} of ${progress.total} pages`;
    case 'fetch':
      return `${progress.bytes} of ${progress.of} bytes`;
    case 'check':
      return 'the copy is checked';
  }
}

/**
 * Lets a running service make a backup, and fetches it into `file`, checked there. Throws
 * `unavailable` when the service does not answer, and what it refused.
 */
export async function fetchBackup(options: {
  readonly url: string;
  readonly adminToken: string;
  /** Certificate authority of the service, in PEM; those that Node knows if absent. */
  readonly ca?: string;
  readonly file: string;
  readonly onProgress: (progress: FetchProgress) => void;
  readonly signal?: AbortSignal;
  /** Longest time in which nothing comes from the service, in milliseconds. Default five minutes. */
  readonly silenceMs?: number;
}): Promise<BackupContent> {
  const { url, file, onProgress } = options;
  await assertBackupTarget(file);
  const base = url.replace(/\/$/, '');
  const call = async (method: string, path: string): Promise<IncomingMessage> => {
    const reply = await ask(new URL(base + path), method, options).catch((error: unknown) => {
      throw unanswered(base, error);
    });
    if (reply.statusCode !== 200) throw await refusal(reply);
    return reply;
  };
  const made = await readLines(await call('POST', '/backup'), base, onProgress);
  const part = `${file}.part`;
  try {
    const reply = await call('GET', `/backup/${made.name}`);
    await (await open(part, 'w', 0o600)).close();
    let bytes = 0;
    const counted = reply.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      onProgress({ step: 'fetch', bytes, of: made.bytes });
    });
    await pipeline(counted, createWriteStream(part, { mode: 0o600 })).catch((error: unknown) => {
      throw fileFailure(error) === undefined ? unanswered(base, error) : error;
    });
    onProgress({ step: 'check' });
    const content = await checkBackup(part);
    await sync(part);
    await rename(part, file);
    return content;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

interface Made {
  readonly name: string;
  readonly bytes: number;
}

async function readLines(
  reply: IncomingMessage,
  base: string,
  onProgress: (progress: BackupProgress) => void,
): Promise<Made> {
  const lines = createInterface({ input: reply })[Symbol.asyncIterator]();
  for (;;) {
    const { done, value: line } = await lines.next().catch((error: unknown) => {
      throw unanswered(base, error);
    });
    if (done === true) throw unanswered(base, new Error('it ended before its backup'));
    const value = parseLine(line);
    if (value === undefined) {
      const message = `What answers at ${base} is not a service of this program.`;
      throw new DomainError('unavailable', 'other_program', message);
    }
    if ('step' in value) onProgress(value);
    else if ('backup' in value) return value.backup;
    else throw new Error(value.error);
  }
}

/** A line of `POST /backup`; undefined for any other text. */
function parseLine(
  text: string,
): BackupProgress | { readonly backup: Made } | { readonly error: string } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isKnown = ['step', 'backup', 'error'].some((name) => Object.hasOwn(Object(value), name));
    return isKnown ? (value as BackupProgress) : undefined;
  } catch {
    return undefined;
  }
}

function unanswered(base: string, cause: unknown): DomainError {
  const reason = errorText(cause);
  const message = `The service at ${base} does not answer: ${reason}.`;
  return new DomainError('unavailable', 'service_unavailable', message, { cause });
}

const SILENCE_MS = 300_000;

/** Resolves when the head of the reply is there. */
function ask(
  url: URL,
  method: string,
  {
    adminToken,
    ca,
    signal,
    silenceMs = SILENCE_MS,
  }: { adminToken: string; ca?: string; signal?: AbortSignal; silenceMs?: number },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = url.protocol === 'https:' ? requestSecure : requestPlain;
  const headers = { authorization: `Bearer ${adminToken}` };
  let reply: IncomingMessage | undefined;
  const sent = request(url, { method, headers, ...defined({ ca, signal }) }, (received) => {
    reply = received;
    resolve(received);
  });
  sent.setTimeout(silenceMs, () => {
    const error = new Error(`nothing came for ${silenceMs / 1_000} seconds`);
    // First, or the reply would end as aborted.
    reply?.destroy(error);
    sent.destroy(error);
  });
  sent.on('error', reject).end();
  return promise;
}

/** Kinds of the statuses that `/backup` answers with; others are faults. */
const KINDS: Readonly<Record<number, ErrorKind>> = {
  401: 'unauthenticated',
  404: 'not_found',
  409: 'conflict',
  422: 'invalid',
  429: 'exhausted',
  503: 'unavailable',
};

async function refusal(reply: IncomingMessage): Promise<DomainError> {
  const { statusCode = 0 } = reply;
  const body: unknown = await json(reply).catch(() => undefined);
  const { error, code: reason = 'internal' } = Object(body) as { error?: string; code?: string };
  const message = error ?? `The service answered ${statusCode}.`;
  return new DomainError(KINDS[statusCode] ?? 'internal', reason, message);
}
