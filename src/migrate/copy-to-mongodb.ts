import type { Collection, Db } from 'mongodb';
import { DomainError } from '../domain/errors.ts';
import { moveAhead } from '../store/mongo/agreed-time.ts';
import {
  type Collections,
  type CountsDocument,
  toCollections,
} from '../store/mongo/collections.ts';
import { noteRemoval } from '../store/mongo/removal.ts';
import type { CopyDocument } from '../store/mongo/unfinished-copy.ts';
import { toDate } from '../store/sqlite/sql.ts';
import { type CopiedDocument, type CopyStep, copySteps, type Source } from './copy-steps.ts';

/** One kind of record that is copied, and the number of them on both sides. */
export interface CopyCount {
  readonly what: string;
  readonly from: number;
  readonly to: number;
  /** Whether the target has all, but for what has expired since. */
  readonly isWhole: boolean;
}

export interface CopyOptions {
  readonly from: Source;
  readonly to: Db;
  /** Called after each batch. */
  readonly onProgress: (what: string, copied: number, of: number) => void;
}

const BATCH_ROWS = 1_000;
/** Of long rows and pages. One row is copied whatever it takes. */
const BATCH_BYTES = 16 * 1_048_576;

/**
 * Copies everything that the embedded database keeps, and returns the counts of both sides. An interrupted
 * copy continues behind what it has written. Crawlers come last, so nothing is crawled
 * before all of it is there. Throws `failed_precondition` if the target has anything else, or if
 * the source was written to since the copy began. The source is left as it is.
 */
export async function copyToMongodb(options: CopyOptions): Promise<CopyCount[]> {
  const { from, to } = options;
  const progress = to.collection<CopyDocument>('meta');
  const collections = toCollections(to);
  const copy = await progress.findOne({ _id: 'copy' });
  if (copy === null && (await collections.accounts.findOne()) !== null) {
    throw new DomainError(
      'failed_precondition',
      'target_not_empty',
      'The target database is in use: it has accounts. Copy into an empty one.',
    );
  }
  if (copy?.done === true) {
    throw new DomainError(
      'failed_precondition',
      'already_copied',
      'The target database holds a finished copy.',
    );
  }
  const [saved] = await from.query('SELECT saved_ms FROM service_time', []);
  const savedMs = Number(saved?.saved_ms);
  if (copy?.savedMs !== undefined && copy.savedMs !== savedMs) {
    throw new DomainError(
      'failed_precondition',
      'source_changed',
      'A service has written to the source since this copy began. Remove the target database, and copy again.',
    );
  }
  await progress.updateOne(
    { _id: 'copy' },
    { $setOnInsert: { positions: {}, done: false, savedMs } },
    { upsert: true },
  );
  const counts: CopyCount[] = [];
  const write = copy === null ? insertAll : replaceAll;
  for (const step of copySteps(from)) {
    counts.push(await copyStep(options, progress, step, write, copy?.positions[step.what] ?? ''));
  }
  const days = await countRows(from, 'history');
  const copiedDays = await countDays(collections.counts);
  const isWhole = days === copiedDays;
  counts.push({ what: 'days of history', from: days, to: copiedDays, isWhole });
  await copyRemovals(from, collections);
  await copySecret(from, to);
  await moveAhead(to, from.clock.aheadMs);
  await progress.updateOne({ _id: 'copy' }, { $set: { done: true } });
  return counts;
}

type Write = (target: Collection<CopiedDocument>, documents: CopiedDocument[]) => Promise<unknown>;

/** Copies the rows of one step that come after `start`. */
async function copyStep(
  { from, to, onProgress }: CopyOptions,
  progress: Collection<CopyDocument>,
  step: CopyStep,
  write: Write,
  start: string,
): Promise<CopyCount> {
  const { what, table, key } = step;
  const target = to.collection<CopiedDocument>(step.into ?? table);
  const total = await countRows(from, table);
  let position = start;
  let copied = position === '' ? 0 : await target.countDocuments();
  const columns = key.join(', ');
  const places = key.map(() => '?').join(', ');
  for (;;) {
    const isFirst = position === '';
    const after = `${table} ${isFirst ? '' : `WHERE (${columns}) > (${places})`} ORDER BY ${columns}`;
    const values = isFirst ? [] : valuesOf(position, key.length);
    const limit = step.sized === true ? await rowsThatFit(from, after, values) : BATCH_ROWS;
    const rows = await from.query(`SELECT * FROM ${after} LIMIT ${limit}`, values);
    const last = rows.at(-1);
    if (last === undefined) {
      const there = await target.countDocuments();
      const isWhole = there === total || (step.expires === true && there < total);
      return { what, from: total, to: there, isWhole };
    }
    await write(target, await Promise.all(rows.map(async (row) => step.toDocument(row))));
    position = key.map((column) => String(last[column])).join('/');
    copied += rows.length;
    await progress.updateOne({ _id: 'copy' }, { $set: { [`positions.${what}`]: position } });
    onProgress(what, Math.min(copied, total), total);
  }
}

/** How many of the next rows make a batch. */
async function rowsThatFit(
  from: Source,
  after: string,
  values: readonly string[],
): Promise<number> {
  const rows = await from.query(`SELECT size FROM ${after} LIMIT ${BATCH_ROWS}`, values);
  let bytes = 0;
  const tooMany = rows.findIndex(({ size }) => (bytes += Number(size)) > BATCH_BYTES);
  return tooMany === -1 ? BATCH_ROWS : Math.max(tooMany, 1);
}

/** The values of a key. The first one, an id, has no slash in it. */
function valuesOf(position: string, columns: number): string[] {
  if (columns === 1) return [position];
  const slash = position.indexOf('/');
  return [position.slice(0, slash), position.slice(slash + 1)];
}

/** Notes in the target what the source still has to sweep up. */
async function copyRemovals(from: Source, collections: Collections): Promise<void> {
  for (const row of await from.query('SELECT crawler_id FROM sweeps', [])) {
    await noteRemoval(collections, String(row.crawler_id));
  }
  for (const row of await from.query('SELECT * FROM removed_accounts', [])) {
    await collections.removedAccounts.updateOne(
      { _id: String(row.account_id) },
      { $set: { removedAt: toDate(row.removed_at) } },
      { upsert: true },
    );
  }
}

/** Copies the secret that seals what the database keeps sealed. */
async function copySecret(from: Source, to: Db): Promise<void> {
  const [row] = await from.query('SELECT secret FROM secret', []);
  if (row === undefined) return;
  await to
    .collection<CopiedDocument>('meta')
    .updateOne({ _id: 'secret' }, { $set: { secret: String(row.secret) } }, { upsert: true });
}

async function countRows(from: Source, table: string): Promise<number> {
  const [row] = await from.query(`SELECT count(*) AS n FROM ${table}`, []);
  return Number(row?.n);
}

async function countDays(counts: Collection<CountsDocument>): Promise<number> {
  let days = 0;
  for await (const part of counts.find({}, { projection: { days: 1 } })) {
    days += Object.keys(part.days ?? {}).length;
  }
  return days;
}

function insertAll(
  target: Collection<CopiedDocument>,
  documents: CopiedDocument[],
): Promise<unknown> {
  return target.insertMany(documents, { ordered: false });
}

/** Inserts documents, and replaces those that an interrupted copy has inserted. */
async function replaceAll(
  target: Collection<CopiedDocument>,
  documents: readonly CopiedDocument[],
): Promise<void> {
  const writes = documents.map((document) => ({
    replaceOne: { filter: { _id: document._id }, replacement: document, upsert: true },
  }));
  await target.bulkWrite(writes, { ordered: false });
}
