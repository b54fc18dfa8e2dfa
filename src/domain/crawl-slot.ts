/**
 * The slot of a crawl: a crawler has as many as it may have crawls in flight. A crawl may be handed
 * over before it has one. It waits then in the thread that runs it, which starts it in the slot of
 * another crawl of the same line whose page has come.
 */
export interface CrawlSlot {
  /** The crawls of one line pass their slots on to one another; they are those of one run. */
  readonly line: number;
  /** Whether the crawl has its slot, so that it may start. */
  readonly isHeld: boolean;
  /** When the crawl got it, by `performance.now`; undefined before. */
  readonly heldSinceMs: number | undefined;
  /** Has `start` called when the crawl gets a slot from elsewhere than from the thread that runs it. */
  whenGiven(start: () => void): void;
  /** Reports that the thread has started `next` in this slot. */
  passTo(next: CrawlSlot): void;
}
