import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import { type ServiceClock, toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { defined } from '../../domain/defined.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import { missingField, ridNotFound } from '../../domain/errors.ts';
import type { MatchFilter } from '../../domain/match-filter.ts';
import { isRid } from '../../domain/rid.ts';
import type {
  CrawlOutcome,
  FoundRid,
  JobSummary,
  Listing,
  ListingPart,
  ResultSummary,
  Store,
} from '../../store/store.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { Quotas } from '../accounts/quotas.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import type { HostReads, HostWait } from './host-list.ts';
import { type JobLife, jobLife } from './job-life.ts';

export type { CrawlOutcome, JobSummary, Listing, ListingPart, ResultSummary };

/** A queued job with its state as it is shown. */
export interface ShownJob extends Omit<JobSummary, 'state'> {
  readonly state: JobSummary['state'] | 'scheduled';
}

/** Where a `rid` is, and the name of its crawler if it belongs to one of the client's. */
export interface LocatedRid extends Omit<FoundRid, 'job'> {
  readonly job?: WaitingJob;
  readonly crawler: Crawler | undefined;
  readonly life: JobLife;
}

/** A queued job, and what its host is waited for. */
export interface WaitingJob extends ShownJob {
  readonly hostWait?: HostWait | undefined;
}

/** Lists for people. Every method that names a crawler throws as {@link CrawlerAccess} does. */
export interface Listings {
  jobs(
    owner: TokenOwner,
    crawlerName: string,
    state: 'waiting' | 'retrying' | 'scheduled' | undefined,
    part: ListingPart,
    matches?: MatchFilter,
  ): Promise<Listing<WaitingJob>>;
  deliveries(
    owner: TokenOwner,
    crawlerName: string,
    filter: {
      readonly state?: DeliverySummary['state'];
      readonly outcome?: CrawlOutcome;
      readonly matches?: MatchFilter;
    },
    part: ListingPart,
  ): Promise<Listing<DeliverySummary>>;
  /** Of the crawler; of all crawlers of the token if `crawlerName` is empty. */
  results(
    owner: TokenOwner,
    crawlerName: string,
    outcome: CrawlOutcome | undefined,
    part: ListingPart,
    matches?: MatchFilter,
  ): Promise<Listing<ResultSummary>>;
  /** Throws `not_found` when nothing of the token's is known by this `rid`. */
  find(owner: TokenOwner, rid: string): Promise<LocatedRid>;
}

/** Makes the lists. */
export function createListings(deps: {
  readonly store: Pick<Store, 'listings' | 'crawlers'>;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly clock: ServiceClock;
  readonly waits: HostReads['waits'];
  readonly holds: Quotas['holds'];
  readonly webhook: Pick<Webhook, 'shownHeaders'>;
}): Listings {
  const { store, access, clock } = deps;
  const { listings } = store;

  // What is due by the service time is shown by the clock.
  const atWall = (moment: Date): Date => toWall(clock, moment);
  const showJob = (job: JobSummary): ShownJob => ({
    ...job,
    state: isScheduled(job, clock.now()) ? 'scheduled' : job.state,
    dueAt: atWall(job.dueAt),
    notBefore: job.notBefore && atWall(job.notBefore),
    firstTriedAt: job.firstTriedAt && atWall(job.firstTriedAt),
  });
  const showDelivery = <Delivery extends DeliverySummary>(delivery: Delivery): Delivery => ({
    ...delivery,
    nextAttemptAt: delivery.nextAttemptAt && atWall(delivery.nextAttemptAt),
  });
  const showResult = <Result extends ResultSummary>(result: Result): Result => ({
    ...result,
    expiresAt: atWall(result.expiresAt),
  });

  /** The crawler, unless it is addressed by another token. */
  async function ownCrawler(owner: TokenOwner, crawlerId: string): Promise<Crawler | undefined> {
    const crawler = await store.crawlers.get(crawlerId);
    const isOwn =
      crawler?.accountId === owner.account.accountId && crawler.tokenType === owner.tokenType;
    return isOwn ? crawler : undefined;
  }

  return {
    async jobs(owner, crawlerName, state, part, matches) {
      const crawler = await access.find(owner, crawlerName);
      const [jobs, waitOf] = await Promise.all([
        filled(part, matches, (each) =>
          listings.jobs(
            crawler.crawlerId,
            state === 'scheduled' ? { scheduledAfter: clock.now() } : state,
            each,
            matches,
          ),
        ),
        deps.waits(crawler),
      ]);
      const rows = jobs.rows.map((job) => ({ ...showJob(job), hostWait: waitOf(job.host) }));
      return { ...jobs, rows };
    },

    async deliveries(owner, crawlerName, filter, part) {
      const { crawlerId } = await access.find(owner, crawlerName);
      const found = await filled(part, filter.matches, (each) =>
        listings.deliveries(crawlerId, filter, each),
      );
      return shown(found, showDelivery);
    },

    async results(owner, crawlerName, outcome, part, matches) {
      const scope = scopeOf(owner);
      const { crawlerId } = crawlerName === '' ? {} : await access.find(owner, crawlerName);
      const selection = crawlerId === undefined ? scope : { ...scope, crawlerId };
      const found = await filled(part, matches, (each) =>
        listings.results(selection, outcome, each, matches),
      );
      return shown(found, showResult);
    },

    async find(owner, rid) {
      if (rid === '') throw missingField('rid');
      if (!isRid(rid)) throw ridNotFound('job', rid);
      const { job, delivery, result } = await listings.locate(rid);
      const { accountId } = owner.account;
      const ownResult =
        result?.accountId === accountId && result.tokenType === owner.tokenType
          ? result
          : undefined;
      const crawlerId = job?.crawlerId ?? delivery?.crawlerId ?? ownResult?.crawlerId;
      const crawler = crawlerId === undefined ? undefined : await ownCrawler(owner, crawlerId);
      const owned = crawler !== undefined;
      if (!owned && ownResult === undefined) throw ridNotFound('job', rid);
      const [waitOf, holds] =
        owned && job ? await Promise.all([deps.waits(crawler), deps.holds(accountId)]) : [];
      const hostWait = job && waitOf?.(job.host);
      const own = defined({
        job: owned ? job : undefined,
        delivery: owned ? delivery : undefined,
        result: ownResult,
      });
      return {
        crawler: owned && !isInternal(crawler) ? crawler : undefined,
        life: jobLife(own, {
          rid,
          crawler,
          hostWait,
          holds: holds ?? [],
          clock,
          webhook: deps.webhook,
        }),
        ...defined({
          job: own.job && { ...showJob(own.job), hostWait },
          delivery: own.delivery && showDelivery(own.delivery),
          result: own.result && showResult(own.result),
        }),
      };
    },
  };
}

/** Parts of a listing that are looked through for one page that a filter selects. */
const MAX_PARTS = 10;

/** A page of what a filter selects: matches may be few and far between. */
async function filled<Row>(
  part: ListingPart,
  matches: MatchFilter | undefined,
  read: (part: ListingPart) => Promise<Listing<Row>>,
): Promise<Listing<Row>> {
  let found = await read(part);
  const rows = [...found.rows];
  if (matches === undefined) return found;
  for (let parts = 1; parts < MAX_PARTS && rows.length < part.limit; parts += 1) {
    const { cursor } = found;
    if (cursor === undefined) break;
    found = await read({ limit: part.limit - rows.length, cursor });
    rows.push(...found.rows);
  }
  return { rows, cursor: found.cursor };
}

function isScheduled({ state, notBefore }: JobSummary, now: Date): boolean {
  return state === 'waiting' && notBefore !== undefined && notBefore > now;
}

function shown<Row>({ rows, ...rest }: Listing<Row>, show: (row: Row) => Row): Listing<Row> {
  return { ...rest, rows: rows.map(show) };
}
