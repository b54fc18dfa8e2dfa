import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import { type Clock, type ServiceClock, wallNow } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { missingField, noDeliveries } from '../../domain/errors.ts';
import type { MatchFilter } from '../../domain/match-filter.ts';
import type {
  CrawlOutcome,
  DeliveryFilter,
  ListedJobState,
  ListingPart,
  Store,
} from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import type { JobManagement } from '../queue/jobs.ts';
import { createStreamPlaces } from '../stream-places.ts';
import type { PushAgain } from './push-again.ts';

/** What is done with all that a filter selects. */
export type MatchAction = 'remove_jobs' | 'remove_results' | 'replay' | 'push_again';

/** Which jobs, results or deliveries, and what is done with them. */
export interface MatchRequest {
  /** Undefined if none is named, which is refused. */
  readonly action: MatchAction | undefined;
  readonly filter: MatchFilter;
  readonly jobState: 'waiting' | 'retrying' | 'scheduled' | undefined;
  readonly deliveryState: DeliveryFilter['state'] | undefined;
  readonly outcome: CrawlOutcome | undefined;
  /** Counts, and does nothing. */
  readonly isEstimate: boolean;
  /** Continues behind an earlier part; empty for the first. */
  readonly cursor: string;
}

/** How far an action is. */
export interface MatchProgress {
  readonly matched: number;
  readonly done: number;
  readonly refused: number;
  /** Undefined after the last part. */
  readonly cursor: string | undefined;
}

/**
 * Acts on all that matches, or counts it, and yields the progress after each part. A reader
 * that stops ends it. Throws as {@link CrawlerAccess} does, and what the action throws.
 */
export type ActOnMatches = (
  owner: TokenOwner,
  crawlerName: string,
  request: MatchRequest,
  signal: AbortSignal,
) => AsyncGenerator<MatchProgress, void, undefined>;

/** Rows of a part: between two parts other calls are served. */
const PART = 200;
const LIMITS = { what: 'streams that act on matches', perAccount: 5, all: 100 };

/** Makes the use case. */
export function createActOnMatches(deps: {
  readonly store: Pick<Store, 'listings' | 'queue' | 'results'>;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly jobs: Pick<JobManagement, 'replay'>;
  readonly dispatcher: Pick<Dispatcher, 'abortJob'>;
  readonly pushAgain: PushAgain;
  readonly clock: ServiceClock;
}): ActOnMatches {
  const { store, access, clock } = deps;
  const enter = createStreamPlaces(LIMITS);

  async function removeJobs(crawlerId: string, rids: readonly string[]): Promise<number> {
    const removed = await store.queue.deleteJobs(crawlerId, rids, clock.now());
    for (const rid of removed) deps.dispatcher.abortJob(crawlerId, rid);
    return removed.length;
  }

  /** Reads the rows of an action part by part, and acts on each part. */
  async function sourceOf(owner: TokenOwner, crawlerName: string, request: MatchRequest) {
    const { accountId, tokenType, crawlerId, delivery } = await access.find(owner, crawlerName);
    const { action, filter, outcome } = request;
    const scope = { accountId, tokenType, crawlerId };
    const { delivers } = deliveryModes[delivery];
    const range = { from: filter.from ?? new Date(0), to: filter.to ?? wallNow(clock) };
    const ofDeliveries =
      (state: DeliveryFilter['state'], ended: typeof outcome) => (part: ListingPart) =>
        store.listings.deliveries(
          crawlerId,
          { range, matches: filter, ...defined({ state, outcome: ended }) },
          part,
        );
    const ofResults = (ended: typeof outcome) => (part: ListingPart) =>
      store.listings.results(scope, ended, part, filter);
    switch (action) {
      case undefined:
        throw missingField('action');
      case 'remove_jobs':
        return {
          read: (part: ListingPart) =>
            store.listings.jobs(crawlerId, listedState(request, clock), part, filter),
          act: (rids: readonly string[]) => removeJobs(crawlerId, rids),
        };
      case 'remove_results':
        return {
          read: ofResults(outcome),
          act: async (rids: readonly string[]) => (await store.results.remove(scope, rids)).size,
        };
      case 'replay':
        if (!delivers) throw noDeliveries(crawlerName);
        return {
          read: ofDeliveries(request.deliveryState, outcome),
          act: async (rids: readonly string[]) =>
            (await deps.jobs.replay(owner, crawlerName, { rids })).count,
        };
      default:
        return { read: delivers ? ofDeliveries(undefined, 'failed') : ofResults('failed') };
    }
  }

  async function* again(
    owner: TokenOwner,
    crawlerName: string,
    { filter, cursor }: MatchRequest,
    signal: AbortSignal,
  ): AsyncGenerator<MatchProgress, void, undefined> {
    const { batch = '', reason = '', originalStatus, from, to } = filter;
    const conditions = { batch, reason, originalStatus, from, to, matches: filter };
    const selection = { ...conditions, rids: [], intoBatch: '', cursor };
    let sum = { matched: 0, done: 0, refused: 0 };
    for await (const part of deps.pushAgain(owner, crawlerName, selection, signal)) {
      const refused = part.items.filter(({ pushed }) => 'error' in pushed).length;
      sum = {
        matched: sum.matched + part.items.length,
        done: sum.done + part.items.length - refused,
        refused: sum.refused + refused,
      };
      yield { ...sum, cursor: part.cursor };
    }
  }

  return async function* actOnMatches(owner, crawlerName, request, signal) {
    using _place = enter(owner.account.accountId);
    const { isEstimate } = request;
    if (request.action === 'push_again' && !isEstimate) {
      yield* again(owner, crawlerName, request, signal);
      return;
    }
    const { read, act } = await sourceOf(owner, crawlerName, request);
    let sum = { matched: 0, done: 0, refused: 0 };
    let cursor = request.cursor === '' ? undefined : request.cursor;
    do {
      const found = await read({ limit: PART, ...defined({ cursor }) });
      ({ cursor } = found);
      const rids = found.rows.map(({ rid }) => rid);
      const isDone = isEstimate || act === undefined || rids.length === 0;
      const done = isDone ? 0 : await act(rids);
      sum = {
        matched: sum.matched + rids.length,
        done: sum.done + done,
        refused: sum.refused + (isEstimate ? 0 : rids.length - done),
      };
      yield { ...sum, cursor };
    } while (cursor !== undefined && !signal.aborted);
  };
}

function listedState({ jobState }: MatchRequest, clock: Clock): ListedJobState | undefined {
  return jobState === 'scheduled' ? { scheduledAfter: clock.now() } : jobState;
}
