import type { Condition, Document, Filter } from 'mongodb';
import type { DueJob } from '../../domain/job.ts';
import { DEFAULT_PRIORITY, MAX_ORDER_MS } from '../../domain/priority.ts';
import { DIGITS, kindOf } from '../../domain/share-digits.ts';
import { indexBehind } from '../../domain/sorted-names.ts';
import { hostsOf } from '../rules.ts';
import type { HostsLook, LookReceipt, QueueLook } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { type HostMarks, type HostRange, isWithin, type ReadRange } from './host-marks.ts';
import { toJob } from './job-document.ts';
import { FIRST_DUE } from './lease.ts';

/** What a look has found. */
type Found = Omit<LookReceipt, 'jobs'> & { readonly documents: readonly JobDocument[] };

/** Most hosts that a query names. */
const MAX_LEFT_OUT = 1_000;
/** A look that has found something ends after this time. The next one continues. */
const MAX_LOOK_MS = 1_000;
/** Ranges of hosts that one command reads, and the most jobs that they may have together. */
const RANGES = { least: 8, most: 32, jobs: 2_048 } as const;

/** Matches the jobs with one of these digits. */
function ofDigits(digits: string | undefined): Filter<JobDocument> {
  if (digits === undefined) return {};
  // The index of the sort has the rids.
  if (kindOf(digits) === 'rid') return { _id: { $regex: `[${digits}]$` } };
  // Jobs of an older program have none.
  const older = digits.includes(DIGITS.host.charAt(0)) ? [null] : [];
  return { hostDigit: { $in: [...digits.split(''), ...older] } } as Filter<JobDocument>;
}

/** Finds due jobs; see `QueueLook`. */
export async function look(
  collections: Collections,
  marks: HostMarks,
  crawler: Pick<CrawlerDocument, '_id' | 'purges' | 'hasPriorities'>,
  wanted: QueueLook,
  now: Date,
): Promise<LookReceipt> {
  const { _id: crawlerId, purges, hasPriorities = false } = crawler;
  const { digits } = wanted;
  const hosts = hostsOf(wanted, hasPriorities);
  const queue: Filter<JobDocument> = {
    crawlerId,
    queued: true,
    gen: purges,
    ...ofDigits(digits),
    $or: [{ expires: { $exists: false } }, { queueDeadline: { $gt: now } }],
  };
  const { documents, ...found } =
    hosts === undefined
      ? await lookByAge(collections, queue, wanted, now)
      : await lookByHosts(
          collections,
          { queue, hasPriorities, crawlerId, marks },
          { ...wanted, hosts },
          now,
        );
  if (hosts === undefined) {
    const met = documents.map(({ host }) => host);
    // What was pushed before and is not here has been crawled, or is not due.
    if (found.hasMore) marks.add(crawlerId, met);
    else marks.replace(crawlerId, met);
  }
  const jobs = documents.map((document): DueJob => ({ ...toJob(document), dueAt: document.due }));
  return { ...found, jobs };
}

async function lookByAge(
  { jobs }: Collections,
  queue: Filter<JobDocument>,
  { limit, maxBytes = Number.POSITIVE_INFINITY, except = [] }: QueueLook,
  now: Date,
): Promise<Found> {
  // The jobs that the run has are the first in line. To leave them out here costs one comparison
  // each; for `$nin`, some servers compare every job in the queue with every rid.
  const has = new Set(except);
  const cursor = jobs
    .find(queue)
    .sort({ due: 1, _id: 1 })
    .limit(limit + has.size)
    .batchSize(limit + has.size);
  const found: JobDocument[] = [];
  let bytes = 0;
  // Leaving the loop closes the cursor.
  for await (const document of cursor) {
    if (document.due > now) return { documents: found, hasMore: false, nextDueAt: document.due };
    if (has.has(document._id)) continue;
    bytes += document.size;
    if (found.length > 0 && bytes > maxBytes) break;
    found.push(document);
    if (found.length >= limit) break;
  }
  const hasMore = found.length >= limit || bytes > maxBytes;
  return { documents: found, hasMore, nextDueAt: undefined };
}

/** What looks by hosts know of their crawler. */
interface HostsQueue {
  readonly crawlerId: string;
  readonly queue: Filter<JobDocument>;
  readonly hasPriorities: boolean;
  readonly marks: HostMarks;
}

/** The jobs that were read of a range. */
interface RangeJobs extends ReadRange {
  readonly documents: readonly JobDocument[];
}

/** Steps from host to host. One command reads jobs of many hosts that are known. */
async function lookByHosts(
  { jobs }: Collections,
  { crawlerId, queue, hasPriorities, marks }: HostsQueue,
  look: QueueLook & { readonly hosts: HostsLook },
  now: Date,
): Promise<Found> {
  const { limit, maxBytes = Number.POSITIVE_INFINITY, except = [], hosts } = look;
  const lastOrder = new Date(now.getTime() + (hasPriorities ? MAX_ORDER_MS : 0));
  const has = new Set(except);
  // What is found of the others is left in the queue by the run.
  const isLeftOut = new Set([...hosts.full, ...hosts.closed]);
  const leftOut = [...isLeftOut].sort();
  const found: JobDocument[] = [];
  const byHost = new Map<string, number>();
  let bytes = 0;

  const untilMs = performance.now() + MAX_LOOK_MS;

  const isFull = (): boolean => found.length >= limit || bytes > maxBytes;

  function take(document: JobDocument): void {
    if (has.has(document._id) || isFull()) return;
    has.add(document._id);
    bytes += document.size;
    byHost.set(document.host, (byHost.get(document.host) ?? 0) + 1);
    found.push(document);
  }

  const due = (host: Condition<string>): Filter<JobDocument> => ({
    ...queue,
    host,
    order: { $lte: lastOrder },
    due: { $lte: now },
  });
  const byPlace = { host: 1, order: 1, _id: 1 } as const;

  /** Read as they are used, because their bodies may be long. */
  const dueOf = (host: Condition<string>, most: number) =>
    jobs
      .find(due(host))
      .sort(byPlace)
      .limit(most)
      .batchSize(most + 1);

  /** Jobs that the run has may be the first of their host. */
  const page = hosts.perHost + Math.min(has.size, hosts.perHost);
  /** Hosts that may have more than was taken. */
  const capped = new Set<string>();

  /** Takes jobs of hosts that have some above the default priority; half of the room at most. */
  async function takeUrgent(): Promise<void> {
    const urgent = await jobs
      .find(
        {
          ...queue,
          host: { $nin: hosts.closed.slice(0, MAX_LEFT_OUT) },
          priority: { $gt: DEFAULT_PRIORITY },
          order: { $lte: now },
          due: { $lte: now },
        },
        { projection: { host: 1 } },
      )
      .sort({ order: 1, _id: 1 })
      .limit(limit + has.size)
      .toArray();
    const counts = new Map<string, number>();
    for (const { _id, host } of urgent) {
      if (!has.has(_id)) counts.set(host, (counts.get(host) ?? 0) + 1);
    }
    if (counts.size === 0) return;
    const most = Math.ceil(limit / 2);
    for await (const document of dueOf({ $in: [...counts.keys()] }, most + has.size)) {
      const { host } = document;
      if (found.length >= most) return;
      if ((byHost.get(host) ?? 0) < (counts.get(host) ?? 0)) take(document);
    }
  }

  /** The first ranges of which a query names all hosts that are left out. */
  function nameable(ranges: readonly HostRange[]): HostRange[] {
    const named: HostRange[] = [];
    for (const range of ranges) {
      const first = indexBehind(leftOut, range.behind);
      const further = leftOut[first + MAX_LEFT_OUT];
      const isShort = further === undefined || !isWithin(further, range);
      named.push(isShort ? range : { ...range, upTo: leftOut[first + MAX_LEFT_OUT - 1] });
      if (!isShort) break;
    }
    return named;
  }

  /** Finds the first jobs of each range. */
  function firstOf(ranges: readonly HostRange[]) {
    const parts = ranges.map((range): Document[] => {
      const { behind, upTo } = range;
      const within = { $gt: behind, ...(upTo === undefined ? {} : { $lte: upTo }) };
      const first = indexBehind(leftOut, behind);
      const not = leftOut
        .slice(first, first + MAX_LEFT_OUT)
        .filter((each) => isWithin(each, range));
      return [{ $match: due({ ...within, $nin: not }) }, { $sort: byPlace }, { $limit: page }];
    });
    const [first = [], ...others] = parts;
    const coll = jobs.collectionName;
    const unions = others.map((pipeline) => ({ $unionWith: { coll, pipeline } }));
    const batchSize = ranges.length * page + 1;
    return jobs.aggregate<JobDocument>([...first, ...unions], { batchSize });
  }

  /** Reads the first jobs of each range, up to the range whose bodies exceed those of the look. */
  async function read(ranges: readonly HostRange[]): Promise<RangeJobs[]> {
    const found = ranges.map((): JobDocument[] => []);
    let newBytes = bytes;
    /** The range in which it stopped, if it did. */
    let cut: number | undefined;
    for await (const document of firstOf(ranges)) {
      const at = ranges.findIndex((range) => isWithin(document.host, range));
      found[at]?.push(document);
      if (!has.has(document._id)) newBytes += document.size;
      if (newBytes <= maxBytes) continue;
      cut = at;
      break;
    }
    return ranges.slice(0, (cut ?? ranges.length) + 1).map((range, n) => {
      const documents = found[n] ?? [];
      const isWhole = documents.length < page && n !== cut;
      return { range, documents, isWhole };
    });
  }

  /** The next ranges of one, as many as it takes to fill the look, and what was read of them. */
  async function readNext(range: HostRange): Promise<RangeJobs[]> {
    const wanted = Math.ceil((limit - found.length) / hosts.perHost);
    const most = Math.min(Math.max(wanted, RANGES.least), RANGES.most, RANGES.jobs / page);
    const parts = { most, jobs: hosts.perHost, except: isLeftOut };
    const all = await read(nameable(marks.divide(crawlerId, range, parts)));
    marks.note(crawlerId, all, isLeftOut);
    return all;
  }

  /** Goes through the hosts of a range. Returns the host that it stopped at, if it did. */
  async function goThrough({ behind, upTo }: HostRange): Promise<string | undefined> {
    for (let after = behind; ; ) {
      for (const { range, documents, isWhole } of await readNext({ behind: after, upTo })) {
        for (const document of documents) {
          const isNew = document.host !== after;
          if (isNew && isFull()) return after;
          if ((byHost.get(document.host) ?? 0) < hosts.perHost) take(document);
          if (!has.has(document._id)) capped.add(document.host);
          after = document.host;
        }
        if (!isWhole) {
          capped.add(after);
          // The rest of the range is read with the next command.
          if (after !== range.upTo) break;
        } else if (range.upTo === upTo) return undefined;
        else after = range.upTo ?? after;
      }
      if (found.length > 0 && performance.now() >= untilMs) return after;
    }
  }

  if (hasPriorities) await takeUrgent();
  const stoppedAt =
    (await goThrough({ behind: hosts.after, upTo: undefined })) ??
    (hosts.after === '' ? undefined : await goThrough({ behind: '', upTo: hosts.after }));
  if (stoppedAt !== undefined) {
    return { documents: found, hasMore: true, nextDueAt: undefined, lastHost: stoppedAt };
  }
  const rest = [...new Set([...capped, ...hosts.full])];
  const most = Math.min(limit, found.length + hosts.rest);
  let hasMore = isFull() && rest.length > 0;
  if (rest.length > 0 && !isFull()) {
    for await (const document of dueOf({ $in: rest }, most + has.size + 1)) {
      if (has.has(document._id)) continue;
      hasMore = found.length >= most || isFull();
      if (hasMore) break;
      take(document);
    }
  }
  const next = hasMore ? null : await jobs.findOne({ ...queue, due: { $gt: now } }, FIRST_DUE);
  return { documents: found, hasMore, nextDueAt: next?.due, seesAllHosts: true };
}
