import type { TokenType } from '../../domain/account.ts';
import { defined } from '../../domain/defined.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import type { HeaderPair } from '../../domain/job.ts';
import type { CrawlStatus } from '../../domain/result.ts';
import { CB_STATUS } from '../../domain/status.ts';
import { mapListing, partStart, takePart } from '../listing-cursor.ts';
import {
  type CrawlOutcome,
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
import { createFailedCrawls } from './failed-crawls.ts';
import { toJob, toJobFields } from './job-document.ts';
import { readPurges } from './queue-reads.ts';
import { behind, readLight, readPart } from './read-part.ts';
import { scopeAccountId, scopeKey, toCrawlFields, toDeliverySummary } from './records.ts';

type DeliveryRow = Omit<DeliveryDocument, 'body'>;
type ResultRow = Omit<ResultDocument, 'body'>;

const NO_BODY = { body: 0, parameters: 0, callbackHeaders: 0, tries: 0 } as const;
const FAILED = { cbStatus: { $gt: CB_STATUS.success } } as const;
const NO_PAGE = { body: 0, callbackHeaders: 0, request: 0, answers: 0 } as const;

/** Listings for people. */
export function createListings(collections: Collections): ListingStore {
  /** Pending deliveries by their next attempt, up to `scan`. */
  async function pendingDeliveries(
    crawlerId: string,
    part: ListingPart,
    scan: number,
    retried: true | undefined,
  ): Promise<DeliveryRow[]> {
    const start = partStart(part);
    const only = retried ? { attempt: { $gt: 0 } } : {};
    const read = (state: 'due' | 'sending') =>
      readLight(
        collections.deliveries
          .find<DeliveryRow>(
            { crawlerId, state, ...only, ...behind('due', start) },
            { projection: NO_PAGE },
          )
          .sort({ due: 1, _id: 1 })
          .limit(scan),
      );
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
      .slice(0, scan);
  }

  return {
    ...createCrawlerListings(collections),

    async jobs(crawlerId, state, part, matches) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return { rows: [], cursor: undefined };
      const scheduledAfter = typeof state === 'object' ? state.scheduledAfter : undefined;
      const filter = {
        crawlerId,
        gen: crawler.purges,
        ...(state === 'retrying' ? { state } : { queued: true }),
        ...(scheduledAfter && { due: { $gt: scheduledAfter } }),
      };
      const isListed = (job: JobSummary): boolean =>
        scheduledAfter === undefined
          ? state === undefined || job.state === state
          : job.state === 'waiting' &&
            job.notBefore !== undefined &&
            job.notBefore > scheduledAfter;
      const isInOrder = state === undefined || state === 'retrying';
      return readPart(collections.jobs, filter, part, {
        field: 'due',
        projection: NO_BODY,
        scan: isInOrder && matches === undefined ? part.limit : LISTING_SCAN,
        toRow: toJobSummary,
        isWanted: (job) => isListed(job) && isMatchingJob(matches, job),
      });
    },

    async jobsOfHost(crawlerId, host, { limit }, matches) {
      const crawler = await readPurges(collections, crawlerId);
      if (crawler === null) return { rows: [], cursor: undefined };
      const found = await collections.jobs
        .find({ crawlerId, queued: true, gen: crawler.purges, host }, { projection: NO_BODY })
        .limit(LISTING_SCAN)
        .toArray();
      const isWanted = (job: JobDocument): boolean => isMatchingJob(matches, toJobSummary(job));
      const place = ({ _id, due }: JobDocument) => ({ at: due, rid: _id });
      return mapListing(takePart(found, { limit }, isWanted, place), toJobSummary);
    },

    async deliveries(crawlerId, filter, part) {
      const { state, outcome, range, matches } = filter;
      const isWanted = (delivery: DeliverySummary): boolean =>
        (state === undefined || delivery.state === state) &&
        (outcome === undefined || outcomeOf(delivery) === outcome) &&
        isMatchingDelivery(matches, delivery);
      const toRow = (row: DeliveryRow) => toDeliverySummary(row, LISTED_ATTEMPTS);
      if (state === 'pending' && range === undefined) {
        const isFiltered = outcome !== undefined || matches !== undefined;
        const scan = isFiltered ? LISTING_SCAN : part.limit + 1;
        const found = await pendingDeliveries(crawlerId, part, scan, filter.retried);
        const limits = { limit: part.limit, scan };
        const place = ({ _id, due }: DeliveryRow) => ({ at: due, rid: _id });
        return mapListing(
          takePart(found, limits, (row) => isWanted(toRow(row)), place),
          toRow,
        );
      }
      const filtersLater =
        state === 'delivered' ||
        state === 'pending' ||
        outcome === 'completed' ||
        (state === 'failed' && outcome !== undefined) ||
        matches !== undefined;
      const conditions = {
        crawlerId,
        // The database would look through all rows of one index for the other condition.
        ...(state === 'failed' ? { state } : outcome === 'failed' ? FAILED : {}),
        ...(range === undefined ? {} : { createdAt: { $gte: range.from, $lt: range.to } }),
      };
      return readPart(collections.deliveries, conditions, part, {
        field: 'createdAt',
        direction: range === undefined ? -1 : 1,
        projection: NO_PAGE,
        scan: filtersLater ? LISTING_SCAN : part.limit,
        toRow,
        isWanted,
      });
    },

    async results(selection, outcome, part, matches) {
      const { crawlerId } = selection;
      const filtersLater = outcome === 'completed' || matches !== undefined;
      const conditions = {
        ...(crawlerId === undefined ? { scope: scopeKey(selection) } : { crawlerId }),
        ...(outcome === 'failed' ? FAILED : {}),
      };
      return readPart(collections.results, conditions, part, {
        field: 'storedAt',
        direction: -1,
        projection: { body: 0, request: 0 },
        scan: filtersLater ? LISTING_SCAN : part.limit,
        toRow: toResultSummary,
        isWanted: (result) =>
          (outcome === undefined || outcomeOf(result) === outcome) &&
          isMatchingResult(matches, result),
      });
    },

    failedCrawls: createFailedCrawls(collections),

    async locate(rid) {
      const [job, delivery, result] = await Promise.all([
        collections.jobs.findOne({ _id: rid }),
        collections.deliveries.findOne<DeliveryRow>({ _id: rid }, { projection: { body: 0 } }),
        collections.results.findOne<ResultRow>({ _id: rid }, { projection: { body: 0 } }),
      ]);
      const crawler = job && (await readPurges(collections, job.crawlerId));
      const isQueued = crawler && (job.state === 'running' || job.gen >= crawler.purges);
      return {
        ...(isQueued ? { job: { ...toJob(job), ...toJobSummary(job) } } : {}),
        ...(result === null ? {} : { result: locatedResult(result) }),
        ...(delivery === null ? {} : { delivery: locatedDelivery(delivery) }),
      };
    },
  };
}

function outcomeOf({ cbStatus }: CrawlStatus): CrawlOutcome {
  return cbStatus === CB_STATUS.success ? 'completed' : 'failed';
}

function toJobSummary(document: JobDocument): JobSummary {
  return { ...toJobFields(document), dueAt: document.due, lastFailure: document.lastFailure };
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
