import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { createInterface } from 'node:readline';
import { json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { defined } from '../domain/defined.ts';
import { type BackupContent, checkBackup } from './check-backup.ts';
import { assertWritable } from './usable-path.ts';
import { type BackupProgress, sync } from './write-backup.ts';

/** What becomes of a backup that a running service makes. */
export type FetchProgress =
  | BackupProgress
  | { readonly step: 'fetch'; readonly bytes: number; readonly of: number };

/**
 * Lets a running service make a backup, and fetches it into `file`, checked there. Throws an Error
 * for people when the service does not answer, or with what it refused.
 */
export async function fetchBackup(options: {
  readonly url: string;
  readonly adminToken: string;
  /** Certificate authority of the service, in PEM; those that Node knows if absent. */
  readonly ca?: string;
  readonly file: string;
  readonly onProgress: (progress: FetchProgress) => void;
  readonly signal?: AbortSignal;
}): Promise<BackupContent> {
  const { url, file, onProgress } = options;
  await assertWritable(file);
  const base = url.replace(/\/$/, '');
  const call = async (method: string, path: string): Promise<IncomingMessage> => {
    const reply = await ask(new URL(base + path), method, options).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`The service at ${base} does not answer: ${reason}.`, { cause: error });
    });
    if (reply.statusCode !== 200) throw await refusal(reply);
    return reply;
  };
  const made = await readLines(await call('POST', '/backup'), onProgress);
  const part = `${file}.part`;
  try {
    const reply = await call('GET', `/backup/${made.name}`);
    await (await open(part, 'w', 0o600)).close();
    let bytes = 0;
    const counted = reply.on('data', (chunk: Uint8Array) => {
      bytes += chunk.byteLength;
      onProgress({ step: 'fetch', bytes, of: made.bytes });
    });
    await pipeline(counted, createWriteStream(part, { mode: 0o600 }));
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
  onProgress: (progress: BackupProgress) => void,
): Promise<Made> {
  const lines = createInterface({ input: reply });
  for await (const line of lines) {
    const value = JSON.parse(line) as
      | BackupProgress
      | { readonly backup: Made }
      | { readonly error: string };
    if ('step' in value) onProgress(value);
    else if ('backup' in value) return value.backup;
    else throw new Error(value.error);
  }
  throw new Error('The service ended before its backup.');
}

/** Longest time in which nothing comes from the service, in milliseconds. */
const SILENCE_MS = 300_000;

/** Resolves when the head of the reply is there. */
function ask(
  url: URL,
  method: string,
  { adminToken, ca, signal }: { adminToken: string; ca?: string; signal?: AbortSignal },
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = url.protocol === 'https:' ? requestSecure : requestPlain;
  const headers = { authorization: `Bearer ${adminToken}` };
  const sent = request(url, { method, headers, ...defined({ ca, signal }) }, resolve);
  sent.setTimeout(SILENCE_MS, () => sent.destroy(new Error('nothing came for five minutes')));
  sent.on('error', reject).end();
  return promise;
}

async function refusal(reply: IncomingMessage): Promise<Error> {
  const body = (await json(reply).catch(() => ({}))) as { error?: string };
  return new Error(body.error ?? `The service answered ${reply.statusCode}.`);
}
