import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backup, Backups } from '../backup/backups.ts';
import type { BackupProgress } from '../backup/write-backup.ts';
import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { AnyRequest } from '../http/node-http.ts';
import { GatewayError } from '../rest/gateway-error.ts';
import { jsonReply, type Reply } from '../rest/reply.ts';

/** Shortest interval between two lines of progress. */
const PROGRESS_MS = 500;

/**
 * Answers `POST /backup` (makes one; lines of JSON, the last one says what was made), `GET /backup`
 * (lists them) and `GET /backup/NAME` (its bytes).
 */
export async function answerBackup(
  backups: Backups | undefined,
  { method, url = '' }: AnyRequest,
  logger: Logger,
): Promise<Reply> {
  if (backups === undefined) {
    const message = 'MongoDB is backed up by its own tools; docs/operate.md says how.';
    throw new DomainError('failed_precondition', 'backup_not_embedded', message);
  }
  const name = /^\/backup\/([^?]*)/.exec(url)?.[1];
  if (method === 'POST' && name === undefined) {
    return {
      status: 200,
      headers: { 'content-type': 'application/x-ndjson' },
      body: await linesOf(backups, logger),
    };
  }
  if (method !== 'GET') {
    const how = 'POST /backup makes a backup, GET /backup lists them, GET /backup/NAME sends one.';
    throw new GatewayError(405, 'method_not_allowed', how, { headers: { allow: 'GET, POST' } });
  }
  if (name === undefined) {
    return jsonReply(JSON.stringify({ backups: (await backups.list()).map(toMessage) }));
  }
  const { path, bytes } = await backups.get(name);
  return {
    status: 200,
    headers: { 'content-type': 'application/vnd.sqlite3', 'content-length': String(bytes) },
    body: createReadStream(path),
  };
}

/**
 * Makes a backup; yields what becomes of it, and in the end the backup or the error. Rejects with
 * what keeps it from being begun. It is made to its end even if nobody reads on.
 */
async function linesOf(backups: Backups, logger: Logger): Promise<AsyncIterable<Uint8Array>> {
  let progress: BackupProgress | undefined;
  const begun = Promise.withResolvers<void>();
  const made = backups.make((step) => {
    progress = step;
    begun.resolve();
  });
  await Promise.race([made, begun.promise]);
  const last = made.then(
    (backup) => ({ backup: toMessage(backup) }),
    (error: unknown) => {
      logger.error({ err: error }, 'a backup was not made');
      const known = error instanceof DomainError ? error.message : 'The backup was not made.';
      return { error: known, code: error instanceof DomainError ? error.reason : 'internal' };
    },
  );
  return (async function* lines() {
    for (;;) {
      const end = await Promise.race([last, sleep(PROGRESS_MS, undefined, { ref: false })]);
      yield Buffer.from(`${JSON.stringify(end ?? progress)}\n`);
      if (end !== undefined) return;
    }
  })();
}

/** What clients see of a backup: not where it lies. */
function toMessage({ name, bytes, madeAt }: Backup): object {
  return { name, bytes, made_at: madeAt.toISOString() };
}
