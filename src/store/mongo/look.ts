import type { Condition, Filter } from 'mongodb';
import type { DueJob } from '../../domain/job.ts';
import { DEFAULT_PRIORITY, MAX_ORDER_MS } from '../../domain/priority.ts';
import { DIGITS, kindOf } from '../../domain/share-digits.ts';
import { hostsOf } from '../rules.ts';
import type { HostsLook, LookReceipt, QueueLook } from '../store.ts';
import type { Collections, CrawlerDocument, JobDocument } from './collections.ts';
import { toJob } from './job-document.ts';
import type { KnownJobs } from './job-facts.ts';
import { FIRST_DUE } from './lease.ts';

/** What a look has found. */
type Found = Omit<LookReceipt, 'jobs'> & { readonly documents: readonly JobDocument[] };

/** Most hosts that a query names. */
const MAX_LEFT_OUT = 1_000;

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
  known: KnownJobs,
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
      : await lookByHosts(collections, { queue, hasPriorities }, { ...wanted, hosts }, now);
  for (const document of documents) known.note(document._id, document);
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

/** Steps from host to host with one query each, which reads jobs of small hosts together. */
async function lookByHosts(
  { jobs }: Collections,
  {
    queue,
    hasPriorities,
  }: { readonly queue: Filter<JobDocument>; readonly hasPriorities: boolean },
  look: QueueLook & { readonly hosts: HostsLook },
  now: Date,
): Promise<Found> {
  const { limit, maxBytes = Number.POSITIVE_INFINITY, except = [], hosts } = look;
  const lastOrder = new Date(now.getTime() + (hasPriorities ? MAX_ORDER_MS : 0));
  const has = new Set(except);
  // What is found of the others is left in the queue by the run.
  const leftOut = [...hosts.full, ...hosts.closed].slice(0, MAX_LEFT_OUT);
  const found: JobDocument[] = [];
  const byHost = new Map<string, number>();
  let bytes = 0;

  const isFull = (): boolean => found.length >= limit || bytes > maxBytes;

  function take(document: JobDocument): void {
    if (has.has(document._id) || isFull()) return;
    has.add(document._id);
    bytes += document.size;
    byHost.set(document.host, (byHost.get(document.host) ?? 0) + 1);
    found.push(document);
  }

  const dueOf = (host: Condition<string>, most: number): Promise<JobDocument[]> =>
    jobs
      .find({ ...queue, host, order: { $lte: lastOrder }, due: { $lte: now } })
      .sort({ host: 1, order: 1, _id: 1 })
      .limit(most)
      .toArray();

  /** Jobs that the run has may be the first of their host. */
  const page = hosts.perHost + Math.min(has.size, hosts.perHost);
  const capped: string[] = [];

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
    for (const document of await dueOf({ $in: [...counts.keys()] }, most + has.size)) {
      const { host } = document;
      if (found.length >= most) return;
      if ((byHost.get(host) ?? 0) < (counts.get(host) ?? 0)) take(document);
    }
  }

  /** Goes through the hosts of a range. Returns the host that it stopped at, if it did. */
  async function goThrough(from: string, to: string | undefined): Promise<string | undefined> {
    let after = from;
    for (;;) {
      const range = { $gt: after, ...(to === undefined ? {} : { $lte: to }) };
      const documents = await dueOf({ ...range, $nin: leftOut }, page);
      for (const document of documents) {
        const isNew = document.host !== after;
        if (isNew && isFull()) return after;
        if ((byHost.get(document.host) ?? 0) < hosts.perHost) take(document);
        after = document.host;
      }
      if (documents.length < page) return undefined;
      capped.push(after);
    }
  }

  if (hasPriorities) await takeUrgent();
  const stoppedAt =
    (await goThrough(hosts.after, undefined)) ??
    (hosts.after === '' ? undefined : await goThrough('', hosts.after));
  if (stoppedAt !== undefined) {
    return { documents: found, hasMore: true, nextDueAt: undefined, lastHost: stoppedAt };
  }
  const rest = [...new Set([...capped, ...hosts.full])];
  const most = Math.min(limit, found.length + hosts.rest);
  let hasMore = isFull() && rest.length > 0;
  if (rest.length > 0 && !isFull()) {
    for (const document of await dueOf({ $in: rest }, most + has.size + 1)) {
      if (has.has(document._id)) continue;
      hasMore = found.length >= most || isFull();
      if (hasMore) break;
      take(document);
    }
  }
  const next = hasMore ? null : await jobs.findOne({ ...queue, due: { $gt: now } }, FIRST_DUE);
  return { documents: found, hasMore, nextDueAt: next?.due, seesAllHosts: true };
}
