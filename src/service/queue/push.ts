import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import { BATCH_KEPT_DAYS, MAX_BATCHES } from '../../domain/batch.ts';
import type { ServiceClock } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { crawlerNotFound, DomainError, invalidField } from '../../domain/errors.ts';
import type { Job } from '../../domain/job.ts';
import { MAX_BATCH_ITEMS } from '../../domain/limits.ts';
import type { Logger } from '../../domain/logger.ts';
import { chargedJobBytes } from '../../domain/quotas.ts';
import type { Span, Tracing } from '../../domain/tracing.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { PushLimits, PushOutcome, Store } from '../../store/store.ts';
import type { Quotas } from '../accounts/quotas.ts';
import { type CrawlerReference, crawlerLabel } from '../crawlers/async-crawler.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import { type CrawlOffers, offerFor } from './crawl-request.ts';
import { type PushInput, toJob } from './push-input.ts';
import { queueAttributes } from './queue-spans.ts';

const MAX_REQUEST_ID_LENGTH = 64;

/** The result of one item. */
export type PushedItem = AcceptedItem | { readonly error: DomainError };

/** `duplicate`: the `rid` is that of an earlier push with the same unique key. */
export interface AcceptedItem {
  readonly rid: string;
  readonly duplicate?: true;
}

/** The use cases of pushing URLs into queues. */
export interface Pushing {
  /**
   * Resolves after the job is durable. Throws the item's error if it was refused.
   */
  push(
    owner: TokenOwner,
    crawler: CrawlerReference,
    input: PushInput,
    traceparent?: string,
  ): Promise<AcceptedItem>;
  /**
   * Returns one result for each of 1 to 1,000 items; throws only errors of the call as a whole. A
   * repeated call with the same `requestId` returns the first call's results and queues nothing.
   * The jobs continue the trace of `traceparent`.
   */
  pushBatch(
    owner: TokenOwner,
    crawler: CrawlerReference,
    items: readonly PushInput[],
    requestId: string,
    traceparent?: string,
  ): Promise<PushedItem[]>;
}

/** What pushing works with. */
export interface PushingDeps {
  readonly store: Pick<Store, 'queue' | 'rates' | 'traits'>;
  readonly access: CrawlerAccess;
  readonly scheduler: Pick<Scheduler, 'runNow' | 'wake'>;
  readonly dispatcher: Pick<Dispatcher, 'isRunning' | 'notify'>;
  readonly clock: ServiceClock;
  readonly limits: PushLimits;
  readonly quotas: Pick<Quotas, 'admit'>;
  readonly offers: CrawlOffers;
  readonly logger: Logger;
  readonly tracing: Tracing;
  /** URLs per second and token; 0 for no limit. */
  readonly ratePerSecond: number;
  /** Called for each push, for the metrics. */
  readonly onPushed: (accepted: number, refused: number) => void;
  /** Called once when the account's queued URLs exceed the limit. */
  readonly onAccountLimitReached: (owner: TokenOwner) => void;
}

/** The items of a batch after validation, for one crawler. */
interface ParsedBatch {
  readonly crawler: Crawler;
  /** A job, or the error of the item, in the order of the items. */
  readonly items: readonly (Job | DomainError)[];
  readonly jobs: readonly Job[];
  /** Where each job is in `items`. */
  readonly places: readonly number[];
}

/** What became of jobs of a batch, and where each is in its items. */
interface Queued {
  readonly outcomes: readonly PushOutcome[];
  readonly places: readonly number[];
  /** Whether a first call with the `request_id` has been answered with a `rid`, so this one queues nothing. */
  readonly isRepeated: boolean;
}

/** How many jobs of a batch, from the first on, may be queued, and the error of the others. */
interface Admission {
  readonly granted: number;
  readonly refusal: () => DomainError;
}

/** Makes the pushing use cases. */
export function createPushing(deps: PushingDeps): Pushing {
  const { store, access, clock, limits } = deps;

  async function parse(
    crawler: Crawler,
    inputs: readonly PushInput[],
    { traceparent }: Pick<Job, 'traceparent'>,
  ): Promise<ParsedBatch> {
    const offer = await offerFor(deps.offers, crawler.accountId, inputs, crawler.proxy);
    const now = clock.now();
    const items = inputs.map((input) =>
      attempt((): Job => toJob(input, crawler, { clock, now, offer, traceparent })),
    );
    const places = items.flatMap((item, place) => (isJob(item) ? [place] : []));
    return { crawler, items, jobs: items.filter(isJob), places };
  }

  async function takeRate(owner: TokenOwner, count: number) {
    if (deps.ratePerSecond === 0) return { granted: count, retryAfterMs: 0 };
    const key = `${owner.account.accountId}:${owner.tokenType}`;
    return store.rates.take(key, count, deps.ratePerSecond, clock.now());
  }

  async function admit(owner: TokenOwner, jobs: readonly Job[]): Promise<Admission> {
    const quota = await deps.quotas.admit(owner.account, jobs.map(chargedJobBytes), owner.usage);
    const { granted, retryAfterMs } = await takeRate(owner, quota.admitted);
    const isQuotaReached = granted === quota.admitted;
    return {
      granted,
      refusal: () =>
        (isQuotaReached ? quota.refusal : undefined) ??
        rateLimited(deps.ratePerSecond, retryAfterMs),
    };
  }

  async function queue(
    { crawler, jobs, places }: ParsedBatch,
    granted: number,
    owner: TokenOwner,
    requestId: string,
    isFresh = false,
  ): Promise<Queued> {
    // With a request_id even an empty push has outcomes: those of the first call.
    if (granted === 0 && requestId === '') return { outcomes: [], places, isRepeated: false };
    const { crawlerId, accountId } = crawler;
    const settings = isFresh ? {} : { settings: crawler.updatedAt.getTime() };
    const request = { crawlerId, accountId, jobs: jobs.slice(0, granted), ...settings };
    const named = requestId === '' ? request : { ...request, requestId, places };
    const pushed = store.queue.push(named, limits, clock.now());
    const begun = beginRun(crawlerId);
    const receipt = await pushed;
    logPushed(deps.logger, crawlerId, receipt.outcomes);
    if (receipt.crossedAccountLimit) deps.onAccountLimitReached(owner);
    const queued = {
      outcomes: receipt.outcomes,
      places: receipt.places ?? places,
      isRepeated: receipt.places !== undefined,
    };
    if (begun) return queued;
    deps.dispatcher.notify(crawlerId);
    // A start that is lost with this process is made up for by the upkeep.
    if (!receipt.leased && !deps.scheduler.runNow('crawl', crawlerId)) {
      await deps.scheduler.wake('crawl', crawlerId, clock.now());
    }
    return queued;
  }

  /**
   * Begins the run of an idle crawler while its URLs are pushed, so that it need not wait for them to
   * be durable. Only on a store of this process alone: it takes the lease after the push, in the
   * order of the calls, and no other process can have it. Returns whether it did.
   */
  function beginRun(crawlerId: string): boolean {
    if (store.traits.shared || deps.dispatcher.isRunning(crawlerId)) return false;
    return deps.scheduler.runNow('crawl', crawlerId);
  }

  /**
   * Pairs the items of the batch with their outcomes. A job without one was not admitted, or a first
   * call with the `request_id` did not queue it. When that call is repeated, waiting for rate or room
   * does not help.
   */
  function toResults(
    { crawler, items, places }: ParsedBatch,
    queued: Queued,
    { granted, refusal }: Admission,
  ): PushedItem[] {
    const admitted = new Set(places.slice(0, granted));
    const outcomes = new Map(queued.outcomes.map((each, at) => [queued.places[at], each]));
    const refuse = (error: DomainError): PushedItem => {
      const isTransient = error.retryAfterMs !== undefined;
      return { error: queued.isRepeated && isTransient ? requestIdUsed() : error };
    };
    return items.map((item, place): PushedItem => {
      const outcome = outcomes.get(place);
      if (outcome === undefined) {
        if (item instanceof DomainError) return { error: item };
        return refuse(admitted.has(place) ? requestIdUsed() : refusal());
      }
      return 'rid' in outcome ? outcome : refuse(toError(outcome.refused, crawler, limits));
    });
  }

  async function pushBatch(
    owner: TokenOwner,
    reference: CrawlerReference,
    inputs: readonly PushInput[],
    requestId: string,
    traceparent?: string,
  ): Promise<PushedItem[]> {
    assertBatch(inputs, requestId);
    const crawler = await access.findForPush(owner, reference);
    const span = startSend(deps.tracing, crawler, inputs.length, traceparent);
    try {
      const results = await sendBatch(owner, reference, { crawler, inputs, requestId, span });
      span.end();
      return results;
    } catch (error) {
      span.end({}, error instanceof DomainError ? error.reason : 'internal');
      throw error;
    }
  }

  async function sendBatch(
    owner: TokenOwner,
    reference: CrawlerReference,
    sent: {
      readonly crawler: Crawler;
      readonly inputs: readonly PushInput[];
      readonly requestId: string;
      readonly span: Span;
    },
  ): Promise<PushedItem[]> {
    const { inputs, requestId, span } = sent;
    let batch = await parse(sent.crawler, inputs, span);
    // No write will tell whether the crawler is there and takes other items now.
    if (batch.jobs.length === 0) {
      batch = await parse(await access.findRecent(owner, reference), inputs, span);
    }
    const admission = await admit(owner, batch.jobs);
    const { granted } = admission;
    let queued = await queue(batch, granted, owner, requestId);
    if (queued.outcomes.some((each) => 'refused' in each && each.refused === 'crawler_not_found')) {
      // The crawler was changed or removed after it was looked up; another process may have made a
      // new one of the same name.
      access.forget(batch.crawler);
      batch = await parse(await access.findRecent(owner, reference), inputs, span);
      queued = await queue(batch, granted, owner, requestId, true);
    }
    const results = toResults(batch, queued, admission);
    const accepted = results.filter((item) => 'rid' in item).length;
    deps.onPushed(accepted, results.length - accepted);
    return results;
  }

  return {
    pushBatch,
    async push(owner, reference, input, traceparent) {
      const [item] = await pushBatch(owner, reference, [input], '', traceparent);
      if (item === undefined) throw new Error('a push of one item had no result');
      if ('error' in item) throw item.error;
      return item;
    },
  };
}

function startSend(
  tracing: Tracing,
  crawler: Crawler,
  count: number,
  parent: string | undefined,
): Span {
  return tracing.start({
    name: `send ${crawler.name}`,
    kind: 'producer',
    parent,
    attributes: {
      ...queueAttributes(crawler),
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      ...(count === 1 ? {} : { 'messaging.batch.message_count': count }),
    },
  });
}

function logPushed(logger: Logger, crawler: string, outcomes: readonly PushOutcome[]): void {
  if (logger.isLevelEnabled?.('debug') === false) return;
  for (const each of outcomes) {
    if ('rid' in each && each.duplicate !== true)
      logger.debug({ rid: each.rid, crawler }, 'a job was pushed');
  }
}

function assertBatch(items: readonly PushInput[], requestId: string): void {
  if (items.length < 1 || items.length > MAX_BATCH_ITEMS) {
    throw invalidField('items', `items must hold 1 to ${MAX_BATCH_ITEMS} URLs.`);
  }
  if (requestId.length > MAX_REQUEST_ID_LENGTH) {
    throw invalidField(
      'request_id',
      `request_id must be at most ${MAX_REQUEST_ID_LENGTH} characters.`,
    );
  }
}

function rateLimited(perSecond: number, retryAfterMs: number): DomainError {
  return new DomainError(
    'exhausted',
    'rate_limited',
    `The push rate is ${perSecond} URLs per second per token.`,
    { retryAfterMs: Math.max(retryAfterMs, 1), metadata: { limit: perSecond } },
  );
}

/** A refusal that may be repeated, with another `request_id`. */
function requestIdUsed(): DomainError {
  return new DomainError(
    'exhausted',
    'request_id_used',
    'The first call with this request_id did not queue this item; push it with another request_id.',
    { field: 'request_id', retryAfterMs: 1 },
  );
}

function toError(
  refused: Extract<PushOutcome, { refused: string }>['refused'],
  crawler: Crawler,
  limits: PushLimits,
): DomainError {
  switch (refused) {
    case 'crawler_queue_full':
      return new DomainError(
        'exhausted',
        'crawler_queue_full',
        `The queue of ${crawlerLabel(crawler)} is full: it holds ${limits.crawlerQueue} URLs.`,
        { retryAfterMs: 1_000, metadata: { limit: limits.crawlerQueue } },
      );
    case 'account_queue_full':
      return new DomainError(
        'exhausted',
        'account_queue_full',
        `The account's queues are full: they hold more than ${limits.accountQueue} URLs together. Pushes are paused until they are drained or purged.`,
        { retryAfterMs: 1_000, metadata: { limit: limits.accountQueue } },
      );
    case 'crawler_not_found':
      return crawlerNotFound(crawler.name, 'crawler');
    case 'batch_closed':
      return invalidField(
        'batch',
        'The batch is closed: it takes no further URLs.',
        'batch_closed',
      );
    case 'too_many_batches':
      return invalidField(
        'batch',
        `The crawler has ${MAX_BATCHES} batches. They are removed ${BATCH_KEPT_DAYS} days after their end.`,
        'too_many_batches',
      );
  }
}

function isJob(each: Job | DomainError): each is Job {
  return !(each instanceof DomainError);
}

function attempt<Value>(make: () => Value): Value | DomainError {
  try {
    return make();
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}
