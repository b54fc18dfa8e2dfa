import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type BackupContent, checkBackup } from './check-backup.ts';
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
  readonly file: string;
  readonly onProgress: (progress: FetchProgress) => void;
  readonly signal?: AbortSignal;
}): Promise<BackupContent> {
  const { url, file, onProgress } = options;
  const base = url.replace(/\/$/, '');
  const call = async (method: string, path: string): Promise<Response> => {
    const reply = await fetch(base + path, {
      method,
      headers: { authorization: `Bearer ${options.adminToken}` },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }).catch((error: unknown) => {
      throw new Error(`The service at ${base} does not answer.`, { cause: error });
    });
    if (!reply.ok) throw await refusal(reply);
    return reply;
  };
  const made = await readLines(await call('POST', '/backup'), onProgress);
  const part = `${file}.part`;
  try {
    const reply = await call('GET', `/backup/${made.name}`);
    await (await open(part, 'w', 0o600)).close();
    let bytes = 0;
    const counted = Readable.fromWeb(reply.body as never).on('data', (chunk: Uint8Array) => {
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
  reply: Response,
  onProgress: (progress: BackupProgress) => void,
): Promise<Made> {
  const lines = createInterface({ input: Readable.fromWeb(reply.body as never) });
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

async function refusal(reply: Response): Promise<Error> {
  const body = (await reply.json().catch(() => ({}))) as { error?: string };
  return new Error(body.error ?? `The service answered ${reply.status}.`);
}
