import type { Batch } from '../domain/batch.ts';
import type { CrawlRecord } from '../domain/result.ts';
import type { Listing, ListingPart } from './listing-store.ts';

/** The event of a batch that is complete: a delivery whose `rid` is that of the batch. */
export interface BatchEvent {
  readonly record: CrawlRecord;
  readonly expiresAt: Date;
}

/** Batches; a push that names a new one makes it. */
export interface BatchStore {
  get(crawlerId: string, name: string, now: Date): Promise<Batch | undefined>;
  /** The newest first. */
  list(crawlerId: string, part: ListingPart, now: Date): Promise<Listing<Batch>>;
  /**
   * The batch takes no further URLs: pushes that this call does not wait for are refused. Undefined
   * when there is no such batch.
   */
  close(crawlerId: string, name: string, now: Date): Promise<Batch | undefined>;
  /** Removes up to `limit` waiting and retrying jobs of the batch, and returns their number. */
  cancel(batch: Pick<Batch, 'batchId' | 'crawlerId'>, limit: number, now: Date): Promise<number>;
  /** Closed batches of any crawler without a job, that were not completed. */
  done(limit: number, now: Date): Promise<Batch[]>;
  /**
   * Completes a batch that `done` has returned, and makes its event due in the same write. Of several
   * callers one gets true.
   */
  complete(batch: Batch, event: BatchEvent | undefined, now: Date): Promise<boolean>;
}
