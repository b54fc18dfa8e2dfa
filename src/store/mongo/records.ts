import { createHash } from 'node:crypto';
import { Binary } from 'mongodb';
import { parseCoding } from '../../domain/body-coding.ts';
import { defined } from '../../domain/defined.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { recordBytes } from '../../domain/quotas.ts';
import type { CrawlRecord, ResultDetails } from '../../domain/result.ts';
import { toSummary } from '../kept-delivery.ts';
import type { ResultScope, ResultSelection } from '../store.ts';
import type { DeliveryDocument, ResultDocument } from './collections.ts';

/** The key of a token's results. */
export function scopeKey({ accountId, tokenType }: ResultScope): string {
  return `${accountId}/${tokenType}`;
}

/** The account that a scope belongs to. */
export function scopeAccountId(scope: string): string {
  return scope.slice(0, scope.indexOf('/'));
}

/** A hash of a URL, which may itself be longer than an index takes. */
export function hashUrl(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}

function recordFields({ record, expiresAt, batchId }: Omit<NewRecord, 'keptAt'>) {
  return {
    _id: record.rid,
    url: record.url,
    pushedUrl: record.pushedUrl,
    cbStatus: record.cbStatus,
    originalStatus: record.originalStatus,
    contentType: record.contentType,
    ...(record.coding === 'gzip' ? {} : { coding: record.coding }),
    extras: JSON.stringify(record.details),
    expiresAt,
    size: recordBytes(record),
    body: new Binary(record.body),
    ...defined({ batchId, request: record.request }),
  };
}

/** What a stored record is made of. */
interface NewRecord {
  readonly record: CrawlRecord;
  /** When it is made. */
  readonly keptAt: Date;
  readonly expiresAt: Date;
  readonly batchId?: string | undefined;
}

/** A result as it is stored. */
export function resultDocument({
  selection,
  keptAt,
  ...made
}: NewRecord & { readonly selection: ResultSelection }): ResultDocument {
  const { crawlerId } = selection;
  return {
    ...recordFields(made),
    scope: scopeKey(selection),
    ...(crawlerId === undefined ? {} : { crawlerId }),
    seq: 0,
    storedAt: keptAt,
    urlHash: hashUrl(made.record.pushedUrl),
    ...defined({ pageKey: made.record.pageKey }),
  };
}

/**
 * A new delivery. With `epoch`, the holder of that lease sends it at once; otherwise it is due.
 */
export function deliveryDocument({
  crawlerId,
  callbackHeaders,
  epoch,
  due,
  keptAt,
  traceparent,
  ...made
}: NewRecord & {
  readonly traceparent?: string | undefined;
  readonly crawlerId: string;
  readonly callbackHeaders: readonly HeaderPair[];
  readonly epoch: number | undefined;
  readonly due: Date;
}): DeliveryDocument {
  const sending = { state: 'sending', attempt: 1, epoch } as const;
  return {
    ...recordFields(made),
    crawlerId,
    ...(epoch === undefined ? { state: 'due', attempt: 0 } : sending),
    due,
    createdAt: keptAt,
    callbackHeaders: JSON.stringify(callbackHeaders),
    ...defined({ traceparent }),
    attempts: [],
  } as DeliveryDocument;
}

/** What a document says of its crawl, without the page. */
export function toCrawlFields(
  document: Omit<ResultDocument, 'body'> | Omit<DeliveryDocument, 'body'>,
): Omit<CrawlRecord, 'body'> {
  return {
    rid: document._id,
    url: document.url,
    pushedUrl: document.pushedUrl,
    cbStatus: document.cbStatus,
    originalStatus: document.originalStatus,
    contentType: document.contentType,
    coding: parseCoding(document.coding),
    details: JSON.parse(document.extras) as ResultDetails,
  };
}

/** The summary of a delivery, with its last `maxAttempts` attempts. */
export function toDeliverySummary(
  document: Omit<DeliveryDocument, 'body'>,
  maxAttempts?: number,
): DeliverySummary {
  const { size, state, due, createdAt, attempts, answers } = document;
  const kept = { size, state, due, createdAt, attempts, answers };
  return toSummary({ ...toCrawlFields(document), ...kept }, maxAttempts);
}

/** The record of a document. */
export function toRecord(document: ResultDocument | DeliveryDocument): CrawlRecord {
  return { ...toCrawlFields(document), body: document.body.value() };
}
