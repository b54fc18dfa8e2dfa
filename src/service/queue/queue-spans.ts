import type { Crawler } from '../../domain/crawler.ts';
import type { QueuedJob } from '../../domain/job.ts';
import type { Span, SpanAttributes, Tracing } from '../../domain/tracing.ts';

/** What every span of a crawler's queue tells. */
export function queueAttributes({ name }: Pick<Crawler, 'name'>): SpanAttributes {
  return { 'messaging.system': 'queued_crawler', 'messaging.destination.name': name };
}

/** Begins the span of a job that was claimed, with the time it waited before its first try. */
export function startProcessing(tracing: Tracing, job: QueuedJob, crawler: Crawler): Span {
  const span = tracing.start({
    name: `process ${crawler.name}`,
    kind: 'consumer',
    parent: job.traceparent,
    attributes: {
      ...queueAttributes(crawler),
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.message.id': job.rid,
      'queued_crawler.retry': job.retry,
    },
  });
  if (job.retry === 0) {
    const parent = span.traceparent;
    const wait = { name: 'wait in queue', kind: 'internal', parent } as const;
    tracing.start({ ...wait, startedAt: job.createdAt }).end();
  }
  return span;
}
