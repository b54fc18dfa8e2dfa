import { createLruMap } from '../../domain/lru-map.ts';

/** Hosts behind one name, up to another one; undefined for all that follow. */
export interface HostRange {
  readonly behind: string;
  readonly upTo: string | undefined;
}

/**
 * Hosts that this process has met in the queues of its crawlers, with how many jobs they have; infinite when
 * it has not seen all. They divide a look by hosts into ranges that one command reads. All of it may be outdated, which costs
 * further commands.
 */
export interface HostMarks {
  /** Replaces what is known of a range, except of hosts in `except`, by what a look has seen. */
  note(
    crawlerId: string,
    range: HostRange,
    seen: ReadonlyMap<string, number>,
    except: ReadonlySet<string>,
  ): void;
  /**
   * The first ranges of the one that is given, at most `most`. Each has one host, or several if their jobs
   * are not more than `jobs`, without those in `except`. What lies behind the last known host is in the last range.
   */
  divide(
    crawlerId: string,
    range: HostRange,
    parts: { readonly most: number; readonly jobs: number; readonly except: ReadonlySet<string> },
  ): HostRange[];
}

interface Mark {
  readonly host: string;
  readonly jobs: number;
}

const MAX_CRAWLERS = 100;
const MAX_HOSTS = 2_000;

const isWithin = (host: string, { behind, upTo }: HostRange): boolean =>
  host > behind && (upTo === undefined || host <= upTo);

/** Makes an empty collection. */
export function createHostMarks(): HostMarks {
  const marks = createLruMap<string, readonly Mark[]>({ maxEntries: MAX_CRAWLERS });

  return {
    note(crawlerId, range, seen, except) {
      const kept = (marks.get(crawlerId) ?? []).filter(
        ({ host }) => !isWithin(host, range) || (except.has(host) && !seen.has(host)),
      );
      const found = [...seen].map(([host, jobs]) => ({ host, jobs }));
      const all = [...kept, ...found].sort((a, b) => (a.host < b.host ? -1 : 1));
      marks.set(crawlerId, all.slice(0, MAX_HOSTS));
    },
    divide(crawlerId, range, { most, jobs: maxJobs, except }) {
      const ranges: HostRange[] = [];
      let { behind } = range;
      let last = behind;
      let sum = 0;
      for (const { host, jobs } of marks.get(crawlerId) ?? []) {
        if (except.has(host) || !isWithin(host, range)) continue;
        if (sum > 0 && sum + jobs > maxJobs) {
          ranges.push({ behind, upTo: last });
          if (ranges.length >= most) return ranges;
          behind = last;
          sum = 0;
        }
        last = host;
        sum += jobs;
      }
      return [...ranges, { behind, upTo: range.upTo }];
    },
  };
}
