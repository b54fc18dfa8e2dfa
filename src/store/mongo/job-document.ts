import { Binary, type Document } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import { DEFAULT_PRIORITY, type HeaderPair, type Job, type QueuedJob } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import { hostDigit } from '../../domain/share-digits.ts';
import type { JobDocument } from './collections.ts';

/** The job of a document. */
export function toJob(document: JobDocument): QueuedJob {
  return {
    rid: document._id,
    crawlerId: document.crawlerId,
    accountId: document.accountId,
    host: document.host,
    url: document.url,
    method: document.method,
    body: document.body?.value(),
    contentType: document.contentType,
    parameters: JSON.parse(document.parameters) as CrawlParameters,
    callbackHeaders: JSON.parse(document.callbackHeaders) as HeaderPair[],
    queueDeadline: document.queueDeadline,
    createdAt: document.createdAt,
    state: document.state,
    retry: document.retry,
    attempt: document.attempt,
    crashes: document.crashes ?? 0,
    firstTriedAt: document.firstTriedAt,
    traceparent: document.traceparent,
  };
}

/** The document of a new job. */
export function toJobDocument(job: Job, push: string, gen = 0): JobDocument {
  const { rid, body, contentType, queueDeadline, parameters, callbackHeaders, ...rest } = job;
  const { traceparent } = job;
  return {
    _id: rid,
    crawlerId: rest.crawlerId,
    accountId: rest.accountId,
    url: rest.url,
    host: rest.host,
    hostDigit: hostDigit(rest.host),
    priority: DEFAULT_PRIORITY,
    method: rest.method,
    ...(body === undefined ? {} : { body: new Binary(body) }),
    ...(contentType === undefined ? {} : { contentType }),
    parameters: JSON.stringify(parameters),
    callbackHeaders: JSON.stringify(callbackHeaders),
    ...(queueDeadline === undefined ? {} : { queueDeadline, expires: true }),
    createdAt: rest.createdAt,
    size: chargedJobBytes(job),
    state: 'waiting',
    due: rest.createdAt,
    queued: true,
    retry: 0,
    attempt: 0,
    gen,
    push,
    ...defined({ traceparent }),
  };
}

/**
 * Returns a running job to the queue as if it had not been tried: the queue deadline of a job
 * without retries applies again.
 */
export function untriedUpdate(
  change: { readonly due?: Date; readonly attempt?: number } = {},
): Document[] {
  const untried = { $eq: ['$retry', 0] };
  const deadline = { $and: [untried, { $eq: [{ $type: '$queueDeadline' }, 'date'] }] };
  return [
    {
      $set: {
        state: { $cond: [untried, 'waiting', 'retrying'] },
        queued: true,
        ...change,
        firstTriedAt: { $cond: [untried, '$$REMOVE', '$firstTriedAt'] },
        expires: { $cond: [deadline, true, '$$REMOVE'] },
      },
    },
    { $unset: 'epoch' },
  ];
}
