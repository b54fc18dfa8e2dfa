import { Binary } from 'mongodb';
import { parseCoding } from '../domain/body-coding.ts';
import { defined } from '../domain/defined.ts';
import { orderOf, toJobDocument } from '../store/mongo/job-document.ts';
import { hashUrl, scopeKey } from '../store/mongo/records.ts';
import { sampleId } from '../store/mongo/samples.ts';
import { toAuditRecord } from '../store/sqlite/audit.ts';
import { parseAttempts } from '../store/sqlite/delivery-row.ts';
import { toJob } from '../store/sqlite/job-row.ts';
import { toNotice } from '../store/sqlite/notices.ts';
import { PAGE_PIECES } from '../store/sqlite/pages.ts';
import { readOutcomes } from '../store/sqlite/push.ts';
import { toSample } from '../store/sqlite/samples.ts';
import {
  type SqlRow,
  toBytes,
  toDate,
  toOptionalDate,
  toOptionalText,
} from '../store/sqlite/sql.ts';
import type { OpenSqliteStore } from '../store/sqlite/sqlite-store.ts';
import { countsDocument, crawlerDocument } from './crawler-document.ts';

/** The embedded database. */
export type Source = Pick<OpenSqliteStore, 'query' | 'clock'>;

/** A document of the target. */
export interface CopiedDocument {
  readonly _id: string;
}

/** The copy of one kind of record. */
export interface CopyStep {
  /** What is copied, for the user. */
  readonly what: string;
  readonly table: string;
  /** The columns of an index that are unique for each row; the rows are read in their order. */
  readonly key: readonly [string] | readonly [string, string];
  /** The collection that the documents go into, if it has another name than the table. */
  readonly into?: string;
  /** Whether rows may be long. Their column `size` says how long. */
  readonly sized?: true;
  /** Whether MongoDB removes the documents by itself when their time is over, during the copy as well. */
  readonly expires?: true;
  readonly toDocument: (row: SqlRow) => CopiedDocument | Promise<CopiedDocument>;
}

/** The steps of a copy in their order; crawlers are last. */
export function copySteps(from: Source): CopyStep[] {
  const readPage = async (row: SqlRow): Promise<Binary> => {
    const pieces = await from.query(PAGE_PIECES, [row.page_id ?? 0]);
    return new Binary(Buffer.concat(pieces.map(({ body }) => toBytes(body))));
  };
  const recordFields = async (row: SqlRow) => ({
    _id: String(row.rid),
    claim: 0,
    mark: '',
    url: String(row.url),
    pushedUrl: String(row.pushed_url),
    cbStatus: Number(row.cb_status),
    originalStatus: Number(row.original_status),
    contentType: String(row.content_type),
    coding: parseCoding(row.coding),
    extras: String(row.extras),
    expiresAt: toDate(row.expires_at),
    size: Number(row.size),
    body: await readPage(row),
    ...defined({
      batchId: toOptionalText(row.batch_id),
      request: toOptionalText(row.request),
    }),
  });
  return [
    {
      what: 'URLs in queues',
      table: 'jobs',
      key: ['rid'],
      sized: true,
      toDocument: jobDocument,
    },
    {
      what: 'deliveries',
      table: 'deliveries',
      key: ['rid'],
      sized: true,
      toDocument: async (row) => ({
        ...(await recordFields(row)),
        crawlerId: String(row.crawler_id),
        state: row.state,
        due: toOptionalDate(row.due_at) ?? toDate(row.created_at),
        attempt: Number(row.attempt),
        createdAt: toDate(row.created_at),
        callbackHeaders: String(row.callback_headers),
        ...defined({ traceparent: toOptionalText(row.traceparent) }),
        attempts: parseAttempts(row),
        ...(row.answers === null ? {} : { answers: JSON.parse(String(row.answers)) as unknown }),
      }),
    },
    {
      what: 'stored results',
      table: 'results',
      key: ['rid'],
      sized: true,
      toDocument: async (row) => ({
        ...(await recordFields(row)),
        scope: scopeKey({
          accountId: String(row.account_id),
          tokenType: row.token_type as 'normal' | 'javascript',
        }),
        ...(row.crawler_id === null ? {} : { crawlerId: String(row.crawler_id) }),
        seq: 0,
        storedAt: toDate(row.stored_at),
        urlHash: hashUrl(String(row.pushed_url)),
        ...defined({ pageKey: toOptionalText(row.page_key) }),
      }),
    },
    {
      what: 'push requests',
      table: 'push_requests',
      key: ['crawler_id', 'request_id'],
      expires: true,
      toDocument: (row) => ({
        _id: joined(row.crawler_id, row.request_id),
        crawlerId: String(row.crawler_id),
        ...readOutcomes(row),
        expiresAt: toDate(row.expires_at),
      }),
    },
    {
      what: 'unique keys',
      table: 'unique_keys',
      key: ['crawler_id', 'key'],
      expires: true,
      toDocument: (row) => ({
        _id: joined(row.crawler_id, row.key),
        crawlerId: String(row.crawler_id),
        rid: String(row.rid),
        gen: Number(row.gen),
        ...defined({ expiresAt: toOptionalDate(row.until) }),
      }),
    },
    {
      what: 'batches',
      table: 'batches',
      key: ['batch_id'],
      toDocument: (row) => ({
        _id: String(row.batch_id),
        crawlerId: String(row.crawler_id),
        name: String(row.name),
        createdAt: toDate(row.created_at),
        expiresAt: toDate(row.expires_at),
        ...defined({
          closedAt: toOptionalDate(row.closed_at),
          completedAt: toOptionalDate(row.completed_at),
        }),
      }),
    },
    {
      what: 'counters of batches',
      table: 'batches',
      key: ['batch_id'],
      into: 'batch_parts',
      toDocument: (row) => ({
        _id: joined(row.batch_id, 'copied'),
        batchId: String(row.batch_id),
        crawlerId: String(row.crawler_id),
        accepted: Number(row.accepted),
        completed: Number(row.completed),
        failures: JSON.parse(String(row.failures)) as Record<string, number>,
        lastPushedAt: toDate(row.last_pushed_at),
        ...defined({ lastEndedAt: toOptionalDate(row.last_ended_at) }),
      }),
    },
    {
      what: 'notices to be sent',
      table: 'notices',
      key: ['notice_id'],
      toDocument: (row) => {
        const { noticeId, ...notice } = toNotice(row);
        return { _id: noticeId, ...notice };
      },
    },
    {
      what: 'audit records',
      table: 'audit',
      key: ['audit_id'],
      expires: true,
      toDocument: (row) => {
        const { auditId, ...record } = toAuditRecord(row);
        return { _id: auditId, ...record };
      },
    },
    {
      what: 'pools of proxies',
      table: 'proxy_pools',
      key: ['account_id'],
      toDocument: (row) => ({
        _id: String(row.account_id),
        version: Number(row.version),
        sealed: String(row.sealed),
      }),
    },
    {
      what: 'accounts',
      table: 'accounts',
      key: ['account_id'],
      toDocument: (row) => ({
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
      what: 'samples of timelines',
      table: 'samples',
      key: ['crawler_id', 'at'],
      expires: true,
      toDocument: (row) => {
        const [crawlerId, sample] = [String(row.crawler_id), toSample(row)];
        return { _id: sampleId(crawlerId, sample.at), crawlerId, ...sample };
      },
    },
    {
      what: 'counters of crawlers',
      table: `(SELECT *, (SELECT coalesce(sum(size), 0) FROM jobs j
            WHERE j.crawler_id = crawlers.crawler_id AND state = 'running') AS running_bytes
          FROM crawlers JOIN dispatch USING (crawler_id))`,
      key: ['crawler_id'],
      into: 'counts',
      toDocument: async (row) => {
        const days = await from.query('SELECT day, counts FROM history WHERE crawler_id = ?', [
          row.crawler_id ?? '',
        ]);
        return countsDocument(row, days);
      },
    },
    {
      what: 'crawlers',
      table: '(SELECT * FROM crawlers JOIN dispatch USING (crawler_id))',
      key: ['crawler_id'],
      into: 'crawlers',
      toDocument: async (row) => crawlerDocument(row),
    },
  ];
}

/** An `_id` of several parts. */
function joined(...parts: readonly unknown[]): string {
  return parts.map(String).join('/');
}

function jobDocument(row: SqlRow): CopiedDocument {
  const { crashes, ...job } = toJob(row);
  const batchId = toOptionalText(row.batch_id);
  const { expires, ...document } = toJobDocument(job, Number(row.gen), batchId);
  return {
    ...document,
    ...(expires === true && job.firstTriedAt === undefined ? { expires } : {}),
    state: job.state,
    due: toDate(row.due_at),
    order: orderOf(toDate(row.due_at), job.priority),
    retry: job.retry,
    attempt: job.attempt,
    ...(crashes > 0 ? { crashes } : {}),
    ...defined({
      uniqueKey: toOptionalText(row.unique_key),
      lastFailure: toOptionalText(row.last_failure),
    }),
  } as CopiedDocument;
}
