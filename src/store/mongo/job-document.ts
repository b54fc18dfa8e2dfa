import { Binary, type Document } from 'mongodb';
import { defined } from '../../domain/defined.ts';
import type { HeaderPair, Job, QueuedJob } from '../../domain/job.ts';
import type { CrawlParameters } from '../../domain/parameters.ts';
import { DEFAULT_PRIORITY, orderMs, PRIORITY_STEP_MS } from '../../domain/priority.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import { hostDigit } from '../../domain/share-digits.ts';
import type { JobDocument } from './collections.ts';

/** What a job and its row in a listing have of its document. */
export function toJobFields(document: JobDocument) {
  return {
    rid: document._id,
    crawlerId: document.crawlerId,
    host: document.host,
    url: document.url,
    method: document.method,
    priority: document.priority,
    notBefore: document.notBefore,
    queueDeadline: document.queueDeadline,
    createdAt: document.createdAt,
    state: document.state,
    retry: document.retry,
    firstTriedAt: document.firstTriedAt,
    climbed: document.climbed,
    againOf: document.againOf,
    batch: document.batch,
    metadata: document.metadata,
  };
}

/** The job of a document. */
export function toJob(document: JobDocument): QueuedJob {
  return {
    ...toJobFields(document),
    accountId: document.accountId,
    body: document.body?.value(),
    contentType: document.contentType,
    parameters: JSON.parse(document.parameters) as CrawlParameters,
    callbackHeaders: JSON.parse(document.callbackHeaders) as HeaderPair[],
    attempt: document.attempt,
    crashes: document.crashes ?? 0,
    tries: document.tries,
    traceparent: document.traceparent,
  };
}

/** The document of a new job. */
export function toJobDocument(job: Job, gen = 0, batchId?: string): JobDocument {
  const { rid, body, parameters, callbackHeaders, unique, ...same } = job;
  const due = job.notBefore ?? job.createdAt;
  return {
    ...defined({ ...same, body: body && new Binary(body), batchId, uniqueKey: unique?.key }),
    ...(job.queueDeadline === undefined ? {} : { expires: true }),
    _id: rid,
    hostDigit: hostDigit(job.host),
    parameters: JSON.stringify(parameters),
    callbackHeaders: JSON.stringify(callbackHeaders),
    size: chargedJobBytes(job),
    state: 'waiting',
    due,
    order: orderOf(due, job.priority),
    queued: true,
    retry: 0,
    attempt: 0,
    gen,
  };
}

/** `order` of a job. */
export function orderOf(dueAt: Date, priority: number): Date {
  return new Date(orderMs({ dueAt, priority }));
}

/** `order` in an update by pipeline; `due` is an expression. */
export function orderExpression(due: unknown): Document {
  const steps = { $subtract: ['$priority', DEFAULT_PRIORITY] };
  return { $subtract: [due, { $multiply: [steps, PRIORITY_STEP_MS] }] };
}

/**
 * Returns a running job to the queue as if it had not been tried: the queue deadline of a job
 * without retries applies again.
 */
export function untriedUpdate(change: {
  readonly due: Date;
  readonly attempt: number;
}): Document[] {
  const untried = { $eq: ['$retry', 0] };
  const deadline = { $and: [untried, { $eq: [{ $type: '$queueDeadline' }, 'date'] }] };
  return [
    {
      $set: {
        state: { $cond: [untried, 'waiting', 'retrying'] },
        queued: true,
        ...change,
        order: orderExpression(change.due),
        firstTriedAt: { $cond: [untried, '$$REMOVE', '$firstTriedAt'] },
        expires: { $cond: [deadline, true, '$$REMOVE'] },
      },
    },
    { $unset: 'epoch' },
  ];
}
