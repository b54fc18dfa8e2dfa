import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Batch, failedOf, removedOf } from '../../domain/batch.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { CrawlRecord } from '../../domain/result.ts';
import { CB_STATUS } from '../../domain/status.ts';

const compress = promisify(gzip);

/** The event that a batch is complete, in place of a page. Its `rid` is the id of the batch. */
export async function completedEvent(
  { name: crawler }: Crawler,
  batch: Batch,
  at: Date,
): Promise<CrawlRecord> {
  const { batchId, name, accepted, completed, failures, createdAt, lastPushedAt } = batch;
  const event = {
    type: 'batch.completed',
    timestamp: at.toISOString(),
    data: {
      crawler,
      batch: name,
      id: batchId,
      accepted,
      completed,
      failed: failedOf(batch),
      failures,
      removed: removedOf(batch),
      created_at: createdAt.toISOString(),
      last_pushed_at: lastPushedAt.toISOString(),
      last_ended_at: batch.lastEndedAt?.toISOString(),
      closed_at: batch.closedAt?.toISOString(),
    },
  };
  const url = `batch:${name}`;
  return {
    rid: batchId,
    url,
    pushedUrl: url,
    cbStatus: CB_STATUS.success,
    originalStatus: 0,
    contentType: 'gzip/json',
    body: await compress(JSON.stringify(event)),
    coding: 'gzip',
    details: { batch: name, event: 'batch.completed' },
  };
}
