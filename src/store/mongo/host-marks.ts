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
 * Hosts that this process has met in the queues of its crawlers or has pushed, with how many jobs they have;
 * infinite when it has not seen all. They divide a look by hosts into ranges that one command reads. All of
 * it may be outdated, which costs further commands.
 */
export interface HostMarks {
  /** Forgets all hosts of a crawler but these, of which it is not known how many jobs they have. */
  replace(crawlerId: string, hosts: Iterable<string>): void;
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

/** What is known of the hosts of a crawler. */
interface Marks {
  /** How many jobs each has. */
  readonly jobs: Map<string, number>;
  /** The hosts in ascending order; undefined since one was added. */
  sorted: readonly string[] | undefined;
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
  const crawlers = createLruMap<string, Marks>({ maxEntries: MAX_CRAWLERS });

  function marksOf(crawlerId: string): Marks {
    const known = crawlers.get(crawlerId) ?? { jobs: new Map(), sorted: [] };
    crawlers.set(crawlerId, known);
    return known;
  }

  function set(marks: Marks, host: string, jobs: number): void {
    if (!marks.jobs.has(host)) {
      if (marks.jobs.size >= MAX_HOSTS) return;
      marks.sorted = undefined;
    }
    marks.jobs.set(host, jobs);
  }

  function sorted(marks: Marks): readonly string[] {
    marks.sorted ??= [...marks.jobs.keys()].sort();
    return marks.sorted;
  }

  function add(crawlerId: string, hosts: Iterable<string>): void {
    const marks = marksOf(crawlerId);
    for (const host of hosts) {
      if (!marks.jobs.has(host)) set(marks, host, Number.POSITIVE_INFINITY);
    }
  }

  return {
    replace(crawlerId, hosts) {
      crawlers.delete(crawlerId);
      add(crawlerId, hosts);
    },
    add,
    note(crawlerId, read, except) {
      const { range: noted, seen } = seenOf(read);
      const marks = marksOf(crawlerId);
      for (const host of sorted(marks)) {
        if (!isWithin(host, noted) || except.has(host) || seen.has(host)) continue;
        marks.jobs.delete(host);
        marks.sorted = undefined;
      }
      for (const [host, jobs] of seen) set(marks, host, jobs);
    },
    divide(crawlerId, range, { most, jobs: maxJobs, except }) {
      const ranges: HostRange[] = [];
      let { behind } = range;
      let last = behind;
      let sum = 0;
      const marks = marksOf(crawlerId);
      for (const host of sorted(marks)) {
        if (except.has(host) || !isWithin(host, range)) continue;
        const jobs = marks.jobs.get(host) ?? 0;
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
