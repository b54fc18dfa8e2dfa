import { setTimeout as sleep } from 'node:timers/promises';
import type { TokenOwner } from '../../domain/account.ts';
import { callbackHeadersText } from '../../domain/callback-headers.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { batchNotFound, DomainError } from '../../domain/errors.ts';
import { parseKeptRequest } from '../../domain/kept-request.ts';
import { MAX_UNIQUE_SECONDS } from '../../domain/limits.ts';
import { isMatch, type MatchFilter } from '../../domain/match-filter.ts';
import { selectedRids } from '../../domain/rid.ts';
import type { FailedSelection } from '../../store/failed-crawls.ts';
import type { FailedCrawl, Store } from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import type { PushedItem, Pushing } from '../queue/push.ts';
import type { PushInput } from '../queue/push-input.ts';
import { createStreamPlaces } from '../stream-places.ts';

/** Which failed crawls are pushed again; all conditions together. */
export interface AgainSelection {
  /** The name of their batch; empty for any. */
  readonly batch: string;
  /** The reason of their failure; empty for any. */
  readonly reason: string;
  /** The status of the target; undefined for any. */
  readonly originalStatus: number | undefined;
  /** When they ended; absent bounds are open. */
  readonly from: Date | undefined;
  readonly to: Date | undefined;
  /** Further conditions on URL, host and `cb_status`. */
  readonly matches?: MatchFilter;
  /** Up to 1,000; empty for all. */
  readonly rids: readonly string[];
  /** The batch of the new pushes; empty for none. */
  readonly intoBatch: string;
  /** Continues behind an earlier part. */
  readonly cursor: string;
}

/** A failed crawl, and what became of its new push. */
export interface PushedAgain {
  readonly of: string;
  readonly pushed: PushedItem;
}

/** A part of what is pushed again, and where the next one begins; undefined after the last. */
export interface AgainPart {
  readonly items: readonly PushedAgain[];
  readonly cursor: string | undefined;
}

/**
 * Pushes failed crawls again, oldest first, as they were pushed, and yields a part at a time. One that
 * was pushed again within 30 days before is answered with the `rid` of that push. Waits while pushes are
 * refused for rate or room; after a minute without a push it yields the refusals and ends. Throws as
 * {@link CrawlerAccess} does.
 */
export type PushAgain = (
  owner: TokenOwner,
  crawlerName: string,
  selection: AgainSelection,
  signal: AbortSignal,
) => AsyncGenerator<AgainPart, void, undefined>;

/** Failed crawls that are read and pushed at a time. */
const PART = 200;
/** How long it waits while nothing is accepted. */
const PATIENCE_MS = 60_000;
const LIMITS = { what: 'streams that push again', perAccount: 5, all: 100 };

/** Makes the use case. */
export function createPushAgain(deps: {
  readonly store: Pick<Store, 'listings' | 'batches'>;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly pushing: Pick<Pushing, 'pushBatch'>;
  readonly clock: ServiceClock;
}): PushAgain {
  const { store, access, pushing, clock } = deps;
  const enter = createStreamPlaces(LIMITS);

  async function select(
    owner: TokenOwner,
    crawlerName: string,
    { batch: name, from, to, rids, reason, originalStatus, matches }: AgainSelection,
  ): Promise<FailedSelection> {
    const crawler = await access.find(owner, crawlerName, 'crawler');
    const { accountId, tokenType, crawlerId, delivery } = crawler;
    const batch = name === '' ? undefined : await store.batches.get(crawlerId, name, clock.now());
    if (name !== '' && batch === undefined) throw batchNotFound(name);
    const { delivers } = deliveryModes[delivery];
    const isRange = from !== undefined || to !== undefined;
    const isSelected =
      name !== '' || reason !== '' || originalStatus !== undefined || matches !== undefined;
    if (!isSelected && !isRange && rids.length === 0) {
      throw new DomainError(
        'invalid',
        'missing_selection',
        'Select failed crawls by batch, reason, original_status, from, to or rids.',
      );
    }
    const range = { from: from ?? new Date(0), to: to ?? wallNow(clock) };
    return {
      accountId,
      tokenType,
      crawlerId,
      delivers,
      ...defined({
        batchId: batch?.batchId,
        range: isRange ? range : undefined,
        rids: rids.length === 0 ? undefined : selectedRids(rids),
      }),
    };
  }

  /** Pushes until each is accepted or refused for good. */
  async function push(
    owner: TokenOwner,
    crawlerName: string,
    inputs: readonly PushInput[],
    signal: AbortSignal,
  ): Promise<{ readonly pushed: PushedItem[]; readonly hasGivenUp: boolean }> {
    const pushed = await pushing.pushBatch(owner, crawlerName, inputs, '');
    let acceptedAt = performance.now();
    for (;;) {
      const again = pushed.flatMap((item, at) => (retryAfter(item) === undefined ? [] : at));
      if (again.length === 0) return { pushed, hasGivenUp: false };
      if (performance.now() - acceptedAt > PATIENCE_MS) return { pushed, hasGivenUp: true };
      const waitMs = Math.max(...again.map((at) => retryAfter(pushed[at]) ?? 0));
      await sleep(waitMs, undefined, { signal });
      const left = again.map((at) => inputs[at] as PushInput);
      for (const [n, item] of (await pushing.pushBatch(owner, crawlerName, left, '')).entries()) {
        pushed[again[n] as number] = item;
        if ('rid' in item) acceptedAt = performance.now();
      }
    }
  }

  return async function* pushAgain(owner, crawlerName, selection, signal) {
    using _place = enter(owner.account.accountId);
    const selected = await select(owner, crawlerName, selection);
    let cursor = selection.cursor === '' ? undefined : selection.cursor;
    let isEmpty = true;
    do {
      const before = cursor;
      const part = { limit: PART, ...defined({ cursor }) };
      const found = await store.listings.failedCrawls(selected, part);
      ({ cursor } = found);
      const crawls = found.rows.filter((crawl) => isWanted(crawl, selection));
      if (crawls.length === 0) continue;
      const inputs = crawls.map((crawl) => toInput(crawl, selection));
      const { pushed, hasGivenUp } = await push(owner, crawlerName, inputs, signal);
      const items = crawls.map(({ rid }, at) => ({ of: rid, pushed: pushed[at] as PushedItem }));
      // What was accepted of the part is not queued again.
      isEmpty = false;
      yield { items, cursor: hasGivenUp ? (before ?? '') : cursor };
      if (hasGivenUp) return;
    } while (cursor !== undefined && !signal.aborted);
    if (isEmpty) yield { items: [], cursor: undefined };
  };
}

function isWanted(
  { failure = '', originalStatus, cbStatus, pushedUrl: url }: FailedCrawl,
  { reason, originalStatus: status, matches = {} }: AgainSelection,
): boolean {
  // The store has selected by batch and time.
  const { batch: _batch, from: _from, to: _to, ...others } = matches;
  const row = { url, batch: undefined, reasons: [failure], cbStatus, originalStatus, at: NO_TIME };
  return (
    (reason === '' || reason === failure) &&
    (status ?? originalStatus) === originalStatus &&
    isMatch(others, row)
  );
}

const NO_TIME = new Date(0);

/** The push as it was, under a key that is the failed crawl's own. */
function toInput(crawl: FailedCrawl, { intoBatch }: AgainSelection): PushInput {
  const { rid, pushedUrl: url, metadata } = crawl;
  const {
    contentType,
    callbackHeaders,
    parameters = {},
    ...kept
  } = parseKeptRequest(crawl.request);
  return {
    url,
    parameters,
    ...defined({ ...kept, metadata, postContentType: contentType }),
    ...defined({
      batch: intoBatch === '' ? undefined : intoBatch,
      callbackHeaders: callbackHeaders && callbackHeadersText(callbackHeaders),
    }),
    againOf: rid,
    uniqueKey: `again ${rid}`,
    uniqueFor: MAX_UNIQUE_SECONDS,
  };
}

function retryAfter(item: PushedItem | undefined): DomainError['retryAfterMs'] {
  return item !== undefined && 'error' in item ? item.error.retryAfterMs : undefined;
}
