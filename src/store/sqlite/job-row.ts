import type { HeaderPair, QueuedJob } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { type SqlRow, toDate, toOptionalDate, toOptionalText } from './sql.ts';

/** What a job and its summary have of its row. */
export function toJobFields(row: SqlRow) {
  return {
    rid: String(row.rid),
    crawlerId: String(row.crawler_id),
    host: String(row.host),
    url: String(row.url),
    method: row.method as QueuedJob['method'],
    priority: Number(row.priority),
    notBefore: toOptionalDate(row.not_before),
    queueDeadline: toOptionalDate(row.queue_deadline),
    createdAt: toDate(row.created_at),
    state: row.state as QueuedJob['state'],
    retry: Number(row.retry),
    firstTriedAt: toOptionalDate(row.first_tried_at),
    climbed: toOptionalText(row.climbed),
    againOf: toOptionalText(row.again_of),
    batch: toOptionalText(row.batch),
    metadata: toOptionalText(row.metadata),
  };
}

/** The job of a row. */
export function toJob(row: SqlRow): QueuedJob {
  return {
    ...toJobFields(row),
    accountId: String(row.account_id),
    body: row.body instanceof Uint8Array ? row.body : undefined,
    contentType: toOptionalText(row.content_type),
    parameters: JSON.parse(String(row.parameters)) as CrawlParameters,
    callbackHeaders: JSON.parse(String(row.callback_headers)) as HeaderPair[],
    attempt: Number(row.attempt),
    crashes: Number(row.crashes),
    tries: toOptionalText(row.tries),
    traceparent: toOptionalText(row.traceparent),
  };
}
