import { createLruMap } from '../../domain/lru-map.ts';

/** Hosts behind one name, up to another one; undefined for all that follow. */
export interface HostRange {
  readonly behind: string;
  readonly upTo: string | undefined;
}

/** Whether a host lies in a range. */
export function isWithin(host: string, { behind, upTo }: HostRange): boolean {
  return host > behind && (upTo === undefined || host <= upTo);
}

/** What was read of a range. */
export interface ReadRange {
  readonly range: HostRange;
  /** In ascending order of their hosts. */
  readonly documents: readonly { readonly host: string }[];
  /** Whether these were all jobs. */
  readonly isWhole: boolean;
}

/**
 * Hosts that this process has met in the queues of its crawlers, with how many jobs they have; infinite when
 * it has not seen all. They divide a look by hosts into ranges that one command reads. All of it may be outdated, which costs
 * further commands.
 */
export interface HostMarks {
  /** Adds hosts of which it is not known how many jobs they have. */
  add(crawlerId: string, hosts: Iterable<string>): void;
  /**
   * Replaces what is known of ranges that follow each other, up to the first of which not all hosts were read. Hosts
   * in `except` were left out.
   */
  note(crawlerId: string, read: readonly ReadRange[], except: ReadonlySet<string>): void;
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

/** The part of the ranges whose hosts were all read, and how many jobs each has. */
function seenOf(read: readonly ReadRange[]): {
  readonly range: HostRange;
  readonly seen: ReadonlyMap<string, number>;
} {
  const seen = new Map<string, number>();
  const behind = read[0]?.range.behind ?? '';
  let upTo: string | undefined = behind;
  for (const { range, documents, isWhole } of read) {
    for (const { host } of documents) seen.set(host, (seen.get(host) ?? 0) + 1);
    const last = documents.at(-1)?.host;
    upTo = range.upTo;
    if (isWhole || last === undefined) continue;
    seen.set(last, Number.POSITIVE_INFINITY);
    if (last === range.upTo) continue;
    upTo = last;
    break;
  }
  return { range: { behind, upTo }, seen };
}

/** Makes an empty collection. */
export function createHostMarks(): HostMarks {
  const marks = createLruMap<string, readonly Mark[]>({ maxEntries: MAX_CRAWLERS });

  function keep(crawlerId: string, jobsOf: ReadonlyMap<string, number>): void {
    const all = [...jobsOf].map(([host, jobs]) => ({ host, jobs }));
    all.sort((a, b) => (a.host < b.host ? -1 : 1));
    marks.set(crawlerId, all.slice(0, MAX_HOSTS));
  }

  return {
    add(crawlerId, hosts) {
      const known = (marks.get(crawlerId) ?? []).map(({ host, jobs }) => [host, jobs] as const);
      const added = [...hosts].map((host) => [host, Number.POSITIVE_INFINITY] as const);
      keep(crawlerId, new Map([...added, ...known]));
    },
    note(crawlerId, read, except) {
      const { range: noted, seen } = seenOf(read);
      const kept = (marks.get(crawlerId) ?? [])
        .filter(({ host }) => !isWithin(host, noted) || except.has(host))
        .map(({ host, jobs }) => [host, jobs] as const);
      keep(crawlerId, new Map([...kept, ...seen]));
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
