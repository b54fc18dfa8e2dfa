import type { CrawlRecord } from '../domain/result.ts';
import type { Listing, ListingPart } from './listing-store.ts';
import type { ResultScope } from './store.ts';

/** Which failed crawls of a crawler are read; all conditions together. */
export interface FailedSelection extends ResultScope {
  readonly crawlerId: string;
  /** Whether they became deliveries; results in storage otherwise. */
  readonly delivers: boolean;
  readonly batchId?: string | undefined;
  /** Ended in `[from, to)`. */
  readonly range?: { readonly from: Date; readonly to: Date } | undefined;
  readonly rids?: readonly string[] | undefined;
}

/** A crawl that failed, and what is kept to repeat it. */
export interface FailedCrawl
  extends Pick<CrawlRecord, 'rid' | 'pushedUrl' | 'cbStatus' | 'originalStatus'> {
  readonly failure: string | undefined;
  readonly metadata: string | undefined;
  /** See `domain/kept-request.ts`. */
  readonly request: string | undefined;
}

/** Failed crawls, the one that ended first before the others. Their pages are not read. */
export type ReadFailedCrawls = (
  selection: FailedSelection,
  part: ListingPart,
) => Promise<Listing<FailedCrawl>>;
