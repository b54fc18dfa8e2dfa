import { createHash } from 'node:crypto';
import { Binary, type Collection } from 'mongodb';
import type { CrawlRecord } from '../../domain/result.ts';
import type { ResultScope } from '../store.ts';
import { detailsText, parseDetails } from '../stored-details.ts';
import type { DeliveryDocument, ResultDocument } from './collections.ts';
import { duplicateIndexes, isDuplicate } from './errors.ts';

/** Where the results of a token are. */
export function scopeKey({ accountId, tokenType }: ResultScope): string {
  return `${accountId}/${tokenType}`;
}

/** Whose scope it is. */
export function scopeAccountId(scope: string): string {
  return scope.slice(0, scope.indexOf('/'));
}

/** Addresses can be longer than an index takes. */
export function hashUrl(url: string): string {
  return createHash('sha256').update(url).digest('base64url');
}

/** Which attempt of a job made a record, and the write that brought it. */
export interface Origin {
  readonly claim: number;
  readonly mark: string;
}

function recordFields(record: CrawlRecord, origin: Origin, expiresAt: Date) {
  return {
    _id: record.rid,
    ...origin,
    url: record.url,
    pushedUrl: record.pushedUrl,
    cbStatus: record.cbStatus,
    originalStatus: record.originalStatus,
    contentType: record.contentType,
    extras: detailsText(record.details),
    expiresAt,
    size: record.body.byteLength,
    body: new Binary(record.body),
  };
}

/** A result as it is stored. */
export function resultDocument(
  scope: ResultScope,
  record: CrawlRecord,
  origin: Origin,
  now: Date,
  expiresAt: Date,
): ResultDocument {
  return {
    ...recordFields(record, origin, expiresAt),
    scope: scopeKey(scope),
    storedAt: now,
    urlHash: hashUrl(record.pushedUrl),
  };
}

/** A new delivery. With `epoch`, the holder of that lease sends it at once; else it is staged until its job has ended. */
export function deliveryDocument(
  crawlerId: string,
  record: CrawlRecord,
  callbackHeaders: DeliveryDocument['callbackHeaders'],
  origin: Origin,
  now: Date,
  expiresAt: Date,
  epoch: number | undefined,
): DeliveryDocument {
  const sending = { state: 'sending', attempt: 1, epoch } as const;
  return {
    ...recordFields(record, origin, expiresAt),
    crawlerId,
    ...(epoch === undefined ? { state: 'staged', attempt: 0 } : sending),
    due: now,
    createdAt: now,
    callbackHeaders,
    attempts: [],
  } as DeliveryDocument;
}

/** Inserts records; one left by an older attempt of its job is replaced, one of a newer attempt stays. */
export async function insertRecords<T extends ResultDocument | DeliveryDocument>(
  collection: Collection<T>,
  documents: readonly T[],
): Promise<void> {
  if (documents.length === 0) return;
  try {
    await collection.insertMany(documents as never, { ordered: false });
  } catch (error) {
    for (const index of duplicateIndexes(error)) {
      const document = documents[index] as T;
      const older = { _id: document._id, claim: { $lt: document.claim } };
      try {
        await collection.replaceOne(older as never, document as never, { upsert: true });
      } catch (newer) {
        if (!isDuplicate(newer)) throw newer;
      }
    }
  }
}

/** A record of its document. */
export function toRecord(document: ResultDocument | DeliveryDocument): CrawlRecord {
  return {
    rid: document._id,
    url: document.url,
    pushedUrl: document.pushedUrl,
    cbStatus: document.cbStatus,
    originalStatus: document.originalStatus,
    contentType: document.contentType,
    details: parseDetails(document.extras),
    body: document.body.value(),
  };
}
