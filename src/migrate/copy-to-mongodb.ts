import { Binary, type Collection, type Db } from 'mongodb';
import { toStoredSettings } from '../domain/crawler-settings.ts';
import type { DeliveryAttempt } from '../domain/delivery.ts';
import { DomainError } from '../domain/errors.ts';
import type { DayCounts } from '../domain/stats.ts';
import { type CrawlerDocument, toCollections } from '../store/mongo/collections.ts';
import { toJobDocument } from '../store/mongo/job-document.ts';
import { NO_WORK } from '../store/mongo/lease.ts';
import { hashUrl, scopeKey } from '../store/mongo/records.ts';
import { noteRemoval } from '../store/mongo/removal.ts';
import { toCrawler } from '../store/sqlite/crawlers.ts';
import { toJob } from '../store/sqlite/job-row.ts';
import { toNotice } from '../store/sqlite/notices.ts';
import { type SqlRow, toDate, toOptionalDate } from '../store/sqlite/sql.ts';
import type { OpenSqliteStore } from '../store/sqlite/sqlite-store.ts';

/** One kind of thing that is copied, and how many there are on both sides. */
export interface CopyCount {
  readonly what: string;
  readonly from: number;
  readonly to: number;
}

/** What a copy reads, writes, and tells. */
export interface CopyOptions {
  readonly from: Pick<OpenSqliteStore, 'query'>;
  readonly to: Db;
  /** Told after each batch. */
  readonly onProgress: (what: string, copied: number, of: number) => void;
}

/** How far a copy has come; it lives in the target until it is whole. */
interface CopyDocument {
  readonly _id: 'copy';
  readonly positions: Readonly<Record<string, string>>;
  readonly done: boolean;
}

type Document = { readonly _id: string };

interface Step {
  readonly what: string;
  readonly table: string;
  /** The columns it is read in the order of; together they are unique. */
  readonly key: string;
  readonly into: string;
  readonly toJobDocument: (row: SqlRow) => Document | Promise<Document>;
}

const BATCH = 200;

/**
 * Copies everything the embedded database keeps. What a copy that broke off has written is kept:
 * the next one goes on behind it. Crawlers come last, so nothing is crawled before all of it is
 * there. Throws `failed_precondition` when the target holds anything else. The counts of both sides
 * are its result; nothing is removed from the source.
 */
export async function copyToMongodb(options: CopyOptions): Promise<CopyCount[]> {
  const { from, to, onProgress } = options;
  const progress = to.collection<CopyDocument>('meta');
  const c = toCollections(to);
  const copy = await progress.findOne({ _id: 'copy' });
  if (copy === null && (await c.accounts.findOne()) !== null) {
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
  await progress.updateOne(
    { _id: 'copy' },
    { $setOnInsert: { positions: {}, done: false } },
    { upsert: true },
  );
  const counts: CopyCount[] = [];
  for (const step of stepsOf(from)) {
    const target = to.collection<Document>(step.into);
    const total = await countOf(from, step.table);
    let position = copy?.positions[step.what] ?? '';
    let copied = position === '' ? 0 : await target.countDocuments();
    for (;;) {
      const rows = await from.query(
        `SELECT *, ${step.key} AS position FROM ${step.table} WHERE position > ? ORDER BY position LIMIT ${BATCH}`,
        [position],
      );
      const last = rows.at(-1);
      if (last === undefined) break;
      await insert(target, await Promise.all(rows.map(async (row) => step.toJobDocument(row))));
      position = String(last.position);
      copied += rows.length;
      await progress.updateOne({ _id: 'copy' }, { $set: { [`positions.${step.what}`]: position } });
      onProgress(step.what, Math.min(copied, total), total);
    }
    counts.push({ what: step.what, from: total, to: await target.countDocuments() });
  }
  counts.push({
    what: 'days of history',
    from: await countOf(from, 'history'),
    to: await countDays(c.crawlers),
  });
  // What the source had yet to sweep up, the target has.
  for (const row of await from.query('SELECT crawler_id FROM sweeps', [])) {
    await noteRemoval(c, String(row.crawler_id));
  }
  await progress.updateOne({ _id: 'copy' }, { $set: { done: true } });
  return counts;
}

async function countOf(from: CopyOptions['from'], table: string): Promise<number> {
  const [row] = await from.query(`SELECT count(*) AS n FROM ${table}`, []);
  return Number(row?.n);
}

async function countDays(crawlers: Collection<CrawlerDocument>): Promise<number> {
  let days = 0;
  for await (const crawler of crawlers.find({}, { projection: { days: 1 } })) {
    days += Object.keys(crawler.days).length;
  }
  return days;
}

/** What is there already was written by the copy that broke off. */
async function insert(target: Collection<Document>, documents: Document[]): Promise<void> {
  const moves = documents.map((document) => ({
    replaceOne: { filter: { _id: document._id }, replacement: document, upsert: true },
  }));
  await target.bulkWrite(moves, { ordered: false });
}

function bytesOf(state: string): string {
  return `(SELECT coalesce(sum(size), 0) FROM jobs j WHERE j.crawler_id = crawlers.crawler_id AND state ${state})`;
}

function stepsOf(from: CopyOptions['from']): Step[] {
  const readPage = async (row: SqlRow): Promise<Binary> => {
    const [page] = await from.query('SELECT body FROM pages WHERE page_id = ?', [row.page_id ?? 0]);
    return new Binary(page?.body instanceof Uint8Array ? page.body : new Uint8Array(0));
  };
  const recordOf = async (row: SqlRow) => ({
    _id: String(row.rid),
    claim: 0,
    mark: '',
    url: String(row.url),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    contentType: String(row.content_type),
    extras: String(row.extras),
    expiresAt: toDate(row.expires_at),
    size: Number(row.size),
    body: await readPage(row),
  });
  return [
    {
      what: 'URLs in queues',
      table: 'jobs',
      key: 'rid',
      into: 'jobs',
      toJobDocument: jobDocument,
    },
    {
      what: 'deliveries',
      table: 'deliveries',
      key: 'rid',
      into: 'deliveries',
      toJobDocument: async (row) => ({
        ...(await recordOf(row)),
        crawlerId: String(row.crawler_id),
        state: row.state,
        due: toOptionalDate(row.due_at) ?? toDate(row.created_at),
        attempt: Number(row.attempt),
        createdAt: toDate(row.created_at),
        callbackHeaders: String(row.callback_headers),
        attempts: attemptsOf(String(row.attempts)),
      }),
    },
    {
      what: 'stored results',
      table: 'results',
      key: 'rid',
      into: 'results',
      toJobDocument: async (row) => ({
        ...(await recordOf(row)),
        scope: scopeKey({
          accountId: String(row.account_id),
          tokenType: row.token_type as 'normal' | 'javascript',
        }),
        storedAt: toDate(row.stored_at),
        urlHash: hashUrl(String(row.pushed_url)),
      }),
    },
    {
      what: 'push requests',
      table: 'push_requests',
      key: "crawler_id || '/' || request_id",
      into: 'push_requests',
      toJobDocument: (row) => ({
        _id: String(row.position),
        crawlerId: String(row.crawler_id),
        rids: [],
        push: '',
        outcomes: JSON.parse(String(row.outcomes)) as unknown,
        claim: '',
        expiresAt: toDate(row.expires_at),
      }),
    },
    {
      what: 'notices to be sent',
      table: 'notices',
      key: 'notice_id',
      into: 'notices',
      toJobDocument: (row) => {
        const { noticeId, ...notice } = toNotice(row);
        return { _id: noticeId, ...notice, claim: '' };
      },
    },
    {
      what: 'accounts',
      table: 'accounts',
      key: 'account_id',
      into: 'accounts',
      toJobDocument: (row) => ({
        _id: String(row.account_id),
        name: String(row.name),
        email: String(row.email),
        normalHash: String(row.normal_hash),
        javascriptHash: String(row.javascript_hash),
        hashes: [String(row.normal_hash), String(row.javascript_hash)],
        createdAt: toDate(row.created_at),
        queued: Number(row.queued),
        over: row.over_limit === 1,
        limits: JSON.parse(String(row.limits)) as unknown,
        crawlers: Number(row.crawlers),
        concurrency: Number(row.concurrency),
        storedBytes: Number(row.stored_bytes),
        queuedBytes: Number(row.queued_bytes),
      }),
    },
    {
      what: 'crawlers',
      table: `(SELECT *, ${bytesOf("= 'running'")} AS running_bytes
          FROM crawlers JOIN dispatch USING (crawler_id))`,
      key: 'crawler_id',
      into: 'crawlers',
      toJobDocument: async (row) => {
        const days = await from.query('SELECT day, counts FROM history WHERE crawler_id = ?', [
          row.crawler_id ?? '',
        ]);
        return crawlerDocument(row, days);
      },
    },
  ];
}

function jobDocument(row: SqlRow): Document {
  const job = toJob(row);
  const { expires, ...document } = toJobDocument(job, '', Number(row.gen));
  return {
    ...document,
    ...(expires === true && job.firstTriedAt === undefined ? { expires } : {}),
    state: job.state,
    due: toDate(row.due_at),
    retry: job.retry,
    attempt: job.attempt,
    ...(job.crashes > 0 ? { crashes: job.crashes } : {}),
    ...(job.firstTriedAt === undefined ? {} : { firstTriedAt: job.firstTriedAt }),
  } as Document;
}

function attemptsOf(text: string): DeliveryAttempt[] {
  const attempts = JSON.parse(text) as (Omit<DeliveryAttempt, 'startedAt'> & {
    startedAt: number;
  })[];
  return attempts.map((each) => ({ ...each, startedAt: new Date(each.startedAt) }));
}

function lastMoments(row: SqlRow): Pick<CrawlerDocument, 'last'> {
  const { last_push_at: push, last_crawl_at: crawl, last_delivery_at: delivery } = row;
  const { last_probe_at: probe } = row;
  const moments = Object.entries({ push, crawl, delivery, probe }).filter(
    ([, moment]) => typeof moment === 'number',
  );
  if (moments.length === 0) return {};
  return {
    last: Object.fromEntries(moments.map(([name, moment]) => [name, toOptionalDate(moment)])),
  };
}

/**
 * All days are with their crawler at first; maintenance gives those that are over to the history.
 */
function crawlerDocument(row: SqlRow, history: readonly SqlRow[]): CrawlerDocument {
  const crawler = toCrawler(row);
  const { crawlerId, callbackUrl, ...others } = crawler;
  const probeAt = toOptionalDate(row.probe_at);
  const days = Object.fromEntries(
    history.map(({ day, counts }) => [String(day), JSON.parse(String(counts)) as DayCounts]),
  );
  const firstDay = Object.keys(days).toSorted()[0];
  return {
    ...others,
    ...toStoredSettings(crawler),
    _id: crawlerId,
    callbackUrl: callbackUrl ?? null,
    ...(probeAt === undefined ? {} : { probeAt }),
    ...lastMoments(row),
    live: Number(row.waiting) + Number(row.running) + Number(row.retrying),
    liveBytes: Number(row.held_bytes) + Number(row.running_bytes),
    runningBytes: Number(row.running_bytes),
    running: Number(row.running),
    retrying: Number(row.retrying),
    completed: Number(row.completed),
    failed: Number(row.failed),
    deleted: Number(row.deleted),
    purged: Number(row.purged),
    deliveriesPending: Number(row.deliveries_pending),
    days,
    ...(firstDay === undefined ? {} : { firstDay }),
    applied: {},
    pending: [],
    moves: 0,
    recounts: 0,
    purges: Number(row.purges),
    epoch: 0,
    leaseOwner: null,
    leaseUntil: new Date(0),
    wakeAt: toOptionalDate(row.wake_at) ?? NO_WORK,
    wakes: 0,
  };
}
