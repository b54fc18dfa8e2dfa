import type { Grant } from '../fairness/fair-pool.ts';
import type { JobOutcome, StartedJob } from '../store/store.ts';

/** What a written outcome leaves in memory. */
export interface KeptPage {
  /** The body before compression, where it is at hand. */
  readonly plain?: Uint8Array;
  /** The memory that the page holds. */
  readonly held: readonly Grant[];
}

/** An ended crawl. */
export interface EndedCrawl extends KeptPage {
  readonly outcome: JobOutcome;
}

/** Ended crawls that no turn has taken, in the order in which they ended. */
export interface UnwrittenEnds {
  readonly size: number;
  /** Bytes of the pages that the next turn writes. */
  readonly nextBytes: number;
  /** The rids of those whose start is written with their end: in the store they still wait. */
  begun(): readonly string[];
  add(end: EndedCrawl): void;
  /** Takes as many as fit into one write. */
  take(): readonly EndedCrawl[];
  /** Takes them back; they are the first again. */
  takeBack(ends: readonly EndedCrawl[]): void;
  /** Has a start written with the crawl's end, if it has ended. */
  takeBackStart(start: StartedJob): void;
  /** Forgets all, and gives their memory back. */
  clear(): void;
}

/** Makes it without any. A write has pages of `writeBytes` at most; a larger page is written alone. */
export function createUnwrittenEnds(writeBytes: number): UnwrittenEnds {
  const ended: EndedCrawl[] = [];

  function nextWrite(): { readonly count: number; readonly bytes: number } {
    let count = 0;
    let bytes = 0;
    for (const each of ended) {
      const next = bytes + pageBytes(each.outcome);
      if (count > 0 && next > writeBytes) break;
      count += 1;
      bytes = next;
    }
    return { count, bytes };
  }

  return {
    get size() {
      return ended.length;
    },
    get nextBytes() {
      return nextWrite().bytes;
    },
    begun: () => ended.flatMap(({ outcome: { rid, startedAt } }) => (startedAt ? [rid] : [])),
    add: (end) => void ended.push(end),
    take: () => ended.splice(0, nextWrite().count),
    takeBack: (ends) => void ended.unshift(...ends),
    takeBackStart({ rid, startedAt }) {
      const index = ended.findIndex(({ outcome }) => outcome.rid === rid);
      const end = ended[index];
      if (end !== undefined) ended[index] = { ...end, outcome: { ...end.outcome, startedAt } };
    },
    clear() {
      for (const { held } of ended.splice(0)) for (const grant of held) grant.release();
    },
  };
}

/** Bytes of the page that an outcome writes. */
export function pageBytes(outcome: JobOutcome): number {
  return 'record' in outcome ? outcome.record.body.byteLength : 0;
}
