import type { Filter } from 'mongodb';
import type { TokenType } from '../../domain/account.ts';
import { defined } from '../../domain/defined.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { CB_STATUS } from '../../domain/status.ts';
import { mapListing, partStart, takePart } from '../listing-cursor.ts';
import {
  type DeliveryFilter,
  type FoundRid,
  type JobSummary,
  LISTED_ATTEMPTS,
  LISTING_SCAN,
  type ListingPart,
  type ListingStore,
  type ResultSummary,
} from '../listing-store.ts';
import { isMatchingDelivery, isMatchingJob, isMatchingResult } from '../matches.ts';
import type { Collections, DeliveryDocument, JobDocument, ResultDocument } from './collections.ts';
import { createCrawlerListings } from './crawler-listings.ts';
import { isPending, toDeliverySummary } from './delivery-summary.ts';
import { createFailedCrawls } from './failed-crawls.ts';
import { toJob } from './job-document.ts';
import { readPurges } from './queue-reads.ts';
import { behind, readLight } from './read-part.ts';
import { scopeAccountId, scopeKey, toCrawlFields } from './records.ts';

type DeliveryRow = Omit<DeliveryDocument, 'body'>;
type ResultRow = Omit<ResultDocument, 'body'>;

const JOB_FIELDS = {
  crawlerId: 1,
  url: 1,
  host: 1,
  method: 1,
  state: 1,
  retry: 1,
  createdAt: 1,
  due: 1,
  firstTriedAt: 1,
  queueDeadline: 1,
  lastFailure: 1,
  metadata: 1,
  batch: 1,
  climbed: 1,
  againOf: 1,
  notBefore: 1,
  priority: 1,
} as const;

const NO_PAGE = { body: 0, callbackHeaders: 0, request: 0, answers: 0 } as const;

/** Listings for people. */
export function createListings(collections: Collections): ListingStore {
  /** Pending deliveries by their next attempt. */
  async function pendingDeliveries(
    crawlerId: string,
    part: ListingPart,
    retried: true | undefined,
  ): Promise<DeliveryRow[]> {
    const start = partStart(part);
    const only = retried ? { attempt: { $gt: 0 } } : {};
    const read = (state: 'due' | 'sending') =>
      collections.deliveries
        .find<DeliveryRow>(
          { crawlerId, state, ...only, ...behind('due', start) },
          { projection: NO_PAGE },
        )
        .sort({ due: 1, _id: 1 })
        .limit(part.limit + 1)
        .toArray();
    // Read in this order, so that a job that is claimed between the reads is missing rather than
    // listed twice.
    const sending = retried ? [] : await read('sending');
    const found = [...sending, ...(await read('due'))];
    const order = (a: DeliveryRow, b: DeliveryRow): number =>
      a.due.getTime() - b.due.getTime() || (a._id < b._id ? -1 : 1);
    const seen = new Set<string>();
    return found
      .filter(({ _id }) => !seen.has(_id) && seen.add(_id))
      .sort(order)
      .slice(0, part.limit + 1);
  }

  function deliveriesByAge(
    crawlerId: string,
    { state, outcome, range }: DeliveryFilter,
    part: ListingPart,
    scan: number,
  ): Promise<DeliveryRow[]> {
    const direction = range === undefined ? -1 : 1;
    const conditions: Filter<DeliveryDocument>[] = [
      { crawlerId },
      state === 'failed' ? { state } : {},
      outcome === 'failed' ? { cbStatus: { $gt: CB_STATUS.success } } : {},
      range === undefined ? {} : { createdAt: { $gte: range.from, $lt: range.to } },
      behind('createdAt', partStart(part), direction),
    ];
    const cursor = collections.deliveries
      .find<DeliveryRow>({ $and: conditions }, { projection: NO_PAGE })
      .sort({ createdAt: direction, _id: direction })
      .limit(scan);
    return readLight(cursor);
  }

  return {
    ...createCrawlerListings(collections),

    async jobs(crawlerId, state, part, matches) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return { rows: [], cursor: undefined };
      const filtersLater = state === 'waiting' || matches !== undefined;
      const scan = filtersLater ? LISTING_SCAN : part.limit;
      const found = await collections.jobs
        .find(
          {
            crawlerId,
            gen: crawler.purges,
            ...(state === 'retrying' ? { state } : { queued: true }),
            ...(typeof state === 'object' ? { notBefore: { $gt: state.scheduledAfter } } : {}),
            ...behind('due', partStart(part)),
          },
          { projection: JOB_FIELDS },
        )
        .sort({ due: 1, _id: 1 })
        .limit(scan)
        .toArray();
      const taken = takePart(
        found,
        { limit: part.limit, scan },
        (job) =>
          (state !== 'waiting' || job.state === state) && isMatchingJob(matches, toJobSummary(job)),
        ({ _id, due }) => ({ at: due, rid: _id }),
      );
      return mapListing(taken, toJobSummary);
    },

    async jobsOfHost(crawlerId, host, { limit }, matches) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return { rows: [], cursor: undefined };
      const found = await collections.jobs
        .find({ crawlerId, queued: true, gen: crawler.purges, host }, { projection: JOB_FIELDS })
        .limit(LISTING_SCAN)
        .toArray();
      const isWanted = (job: JobDocument): boolean => isMatchingJob(matches, toJobSummary(job));
      const place = ({ _id, due }: JobDocument) => ({ at: due, rid: _id });
      return mapListing(takePart(found, { limit }, isWanted, place), toJobSummary);
    },

    async deliveries(crawlerId, filter, part) {
      const { state, outcome, range, matches } = filter;
      const isWanted = (row: DeliveryRow): boolean =>
        (matches === undefined || isMatchingDelivery(matches, toDeliverySummary(row))) &&
        (state === undefined || (isPending(row) ? 'pending' : row.state) === state) &&
        (outcome === undefined ||
          (row.cbStatus === CB_STATUS.success ? 'completed' : 'failed') === outcome);
      const toSummary = (row: DeliveryRow) => toDeliverySummary(row, LISTED_ATTEMPTS);
      if (state === 'pending' && range === undefined) {
        const found = await pendingDeliveries(crawlerId, part, filter.retried);
        const scan = part.limit + 1;
        const place = ({ _id, due }: DeliveryRow) => ({ at: due, rid: _id });
        return mapListing(takePart(found, { limit: part.limit, scan }, isWanted, place), toSummary);
      }
      const filtersLater =
        state === 'delivered' ||
        state === 'pending' ||
        outcome === 'completed' ||
        matches !== undefined;
      const scan = filtersLater ? LISTING_SCAN : part.limit;
      const found = await deliveriesByAge(crawlerId, filter, part, scan);
      const place = ({ _id, createdAt }: DeliveryRow) => ({ at: createdAt, rid: _id });
      return mapListing(takePart(found, { limit: part.limit, scan }, isWanted, place), toSummary);
    },

    async results(selection, outcome, part, matches) {
      const { crawlerId } = selection;
      const filtersLater = outcome === 'completed' || matches !== undefined;
      const scan = filtersLater ? LISTING_SCAN : part.limit;
      const cursor = collections.results
        .find<ResultRow>(
          {
            ...(crawlerId === undefined ? { scope: scopeKey(selection) } : { crawlerId }),
            ...(outcome === 'failed' ? { cbStatus: { $gt: CB_STATUS.success } } : {}),
            ...behind('storedAt', partStart(part), -1),
          },
          { projection: { body: 0, request: 0 } },
        )
        .sort({ storedAt: -1, _id: -1 })
        .limit(scan);
      const found = await readLight(cursor);
      const isWanted = (row: ResultRow): boolean =>
        (outcome !== 'completed' || row.cbStatus === CB_STATUS.success) &&
        (matches === undefined || isMatchingResult(matches, toResultSummary(row)));
      const place = ({ _id, storedAt }: ResultRow) => ({ at: storedAt, rid: _id });
      const taken = takePart(found, { limit: part.limit, scan }, isWanted, place);
      return mapListing(taken, toResultSummary);
    },

    failedCrawls: createFailedCrawls(collections),

    async locate(rid) {
      const [job, delivery, result] = await Promise.all([
        collections.jobs.findOne({ _id: rid }),
        collections.deliveries.findOne<DeliveryRow>({ _id: rid }, { projection: { body: 0 } }),
        collections.results.findOne<ResultRow>({ _id: rid }, { projection: { body: 0 } }),
      ]);
      const isQueued = job !== null && (await isCurrent(job));
      return {
        ...(isQueued ? { job: { ...toJob(job), ...toJobSummary(job) } } : {}),
        ...(result === null ? {} : { result: locatedResult(result) }),
        ...(delivery === null ? {} : { delivery: locatedDelivery(delivery) }),
      };
    },
  };

  async function isCurrent(job: Pick<JobDocument, 'crawlerId' | 'state' | 'gen'>) {
    const crawler = await readPurges(collections, job.crawlerId);
    return crawler !== null && (job.state === 'running' || job.gen >= crawler.purges);
  }
}

function toJobSummary(document: JobDocument): JobSummary {
  return {
    rid: document._id,
    crawlerId: document.crawlerId,
    url: document.url,
    host: document.host,
    method: document.method,
    state: document.state,
    retry: document.retry,
    createdAt: document.createdAt,
    dueAt: document.due,
    firstTriedAt: document.firstTriedAt,
    queueDeadline: document.queueDeadline,
    lastFailure: document.lastFailure,
    metadata: document.metadata,
    batch: document.batch,
    climbed: document.climbed,
    againOf: document.againOf,
    priority: document.priority,
    notBefore: document.notBefore,
  };
}

function toResultSummary(document: ResultRow): ResultSummary {
  return {
    ...toCrawlFields(document),
    storedAt: document.storedAt,
    expiresAt: document.expiresAt,
    size: document.size,
    ...defined({ crawlerId: document.crawlerId }),
  };
}

function locatedDelivery(document: DeliveryRow): NonNullable<FoundRid['delivery']> {
  const { crawlerId, traceparent, request } = document;
  return {
    ...toCrawlFields(document),
    ...toDeliverySummary(document),
    crawlerId,
    callbackHeaders: JSON.parse(document.callbackHeaders) as HeaderPair[],
    traceparent,
    request,
  };
}

function locatedResult(document: ResultRow): NonNullable<FoundRid['result']> {
  const { scope, request } = document;
  const accountId = scopeAccountId(scope);
  return {
    ...toResultSummary(document),
    accountId,
    tokenType: scope.slice(accountId.length + 1) as TokenType,
    request,
  };
}
