import { scopeOf, type TokenOwner } from '../../domain/account.ts';
import type { Crawler, CrawlerMoments } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DomainError, invalidField, missingField } from '../../domain/errors.ts';
import type { MatchFilter } from '../../domain/match-filter.ts';
import { isRid } from '../../domain/rid.ts';
import { hostOf } from '../../domain/target-url.ts';
import type { Store } from '../../store/store.ts';
import type { Listings } from './listings.ts';
import type { AccountOverview, Overviews } from './overviews.ts';

/** A pushed URL that was found. */
export interface SearchHit {
  readonly rid: string;
  readonly url: string;
  /** Empty where it belongs to none. */
  readonly crawler: string;
  readonly kind: 'job' | 'result' | 'delivery';
  /** When it was pushed (jobs), stored (results) or crawled (deliveries). */
  readonly at: Date;
}

/** What a text was found in. */
export interface Found {
  /** Names of crawlers. */
  readonly crawlers: readonly string[];
  readonly hits: readonly SearchHit[];
  /** Whether it did not look everywhere: there was too much, or it took too long. */
  readonly isPartial: boolean;
}

/** Looks for a text in rids, names of crawlers, URLs and hosts of what a token addresses. */
export type Search = (owner: TokenOwner, text: string, signal: AbortSignal) => Promise<Found>;

const MAX_TEXT = 8_192;
const MAX_NAMES = 20;
const MAX_HITS = 50;
/** Hits of one crawler and kind, so that one does not hide the others. */
const MAX_OF_EACH = 10;
const SEARCH_MS = 2_000;

/** Makes the search. */
export function createSearch(deps: {
  readonly store: Pick<Store, 'listings' | 'results'>;
  readonly overviews: Pick<Overviews, 'read' | 'readNamed'>;
  readonly listings: Pick<Listings, 'find'>;
}): Search {
  const { store } = deps;

  async function byRid(owner: TokenOwner, rid: string): Promise<Found> {
    try {
      const { crawler, job, result, delivery } = await deps.listings.find(owner, rid);
      const common = { rid, crawler: crawler?.name ?? '' };
      const hit: SearchHit =
        job !== undefined
          ? { ...common, url: job.url, kind: 'job', at: job.createdAt }
          : delivery !== undefined
            ? { ...common, url: delivery.pushedUrl, kind: 'delivery', at: delivery.createdAt }
            : {
                ...common,
                url: result?.pushedUrl ?? '',
                kind: 'result',
                at: result?.storedAt ?? new Date(0),
              };
      return { crawlers: [], hits: [hit], isPartial: false };
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'not_found') throw error;
      return { crawlers: [], hits: [], isPartial: false };
    }
  }

  async function jobsOf({ crawlerId, name }: Crawler, matches: MatchFilter, host: string) {
    const part = { limit: MAX_OF_EACH };
    const found =
      host === ''
        ? await store.listings.jobs(crawlerId, undefined, part, matches)
        : await store.listings.jobsOfHost(crawlerId, host, part, matches);
    const hits = found.rows.map(
      ({ rid, url, createdAt: at }): SearchHit => ({ rid, url, crawler: name, kind: 'job', at }),
    );
    return { hits, isPartial: found.cursor !== undefined };
  }

  async function deliveriesOf({ crawlerId, name, delivery }: Crawler, matches: MatchFilter) {
    if (!deliveryModes[delivery].delivers) return { hits: [], isPartial: false };
    const part = { limit: MAX_OF_EACH };
    const { rows, cursor } = await store.listings.deliveries(crawlerId, { matches }, part);
    const hits = rows.map(
      ({ rid, pushedUrl: url, createdAt: at }): SearchHit => ({
        rid,
        url,
        crawler: name,
        kind: 'delivery',
        at,
      }),
    );
    return { hits, isPartial: cursor !== undefined };
  }

  async function resultsOf(
    owner: TokenOwner,
    text: string,
    matches: MatchFilter,
    nameOf: (crawlerId: string | undefined) => string,
  ) {
    const scope = scopeOf(owner);
    const { rows, cursor } = await store.listings.results(
      scope,
      undefined,
      { limit: 2 * MAX_OF_EACH },
      matches,
    );
    // The latest of exactly this URL has an index, however many there are.
    const exact = await store.results.newest(scope, text);
    const others = rows.filter(({ rid }) => rid !== exact?.rid);
    const { result } = exact === undefined ? {} : await store.listings.locate(exact.rid);
    const hits = [...(result === undefined ? [] : [result]), ...others].map(
      ({ rid, pushedUrl: url, storedAt: at, crawlerId }): SearchHit => ({
        rid,
        url,
        crawler: nameOf(crawlerId),
        kind: 'result',
        at,
      }),
    );
    return { hits, isPartial: cursor !== undefined };
  }

  return async (owner, given, signal) => {
    const text = given.trim();
    if (text === '') throw missingField('query');
    if (text.length > MAX_TEXT) {
      throw invalidField('query', `query must have at most ${MAX_TEXT} characters.`);
    }
    if (isRid(text)) return byRid(owner, text);
    const { accountId } = owner.account;
    const overview = await deps.overviews.read(accountId);
    const own = ownLatestFirst(owner, overview);
    const named = overview.isPartial
      ? ownLatestFirst(owner, await deps.overviews.readNamed(accountId, text))
      : own;
    const names = named
      .map(({ name }) => name)
      .filter((name) => name.toLowerCase().includes(text.toLowerCase()));
    const matches = { urlContains: text };
    const host = hostOf(text);
    const byId = new Map(own.map(({ crawlerId, name }) => [crawlerId, name]));
    const nameOf = (id: string | undefined): string => byId.get(id ?? '') ?? '';
    const { hits, ...stored } = await resultsOf(owner, text, matches, nameOf);
    let isPartial = stored.isPartial || names.length > MAX_NAMES || overview.isPartial;
    const until = performance.now() + SEARCH_MS;
    for (const crawler of own) {
      if (hits.length >= MAX_HITS || performance.now() > until || signal.aborted) {
        isPartial = true;
        break;
      }
      const parts = await Promise.all([
        jobsOf(crawler, matches, host),
        deliveriesOf(crawler, matches),
      ]);
      for (const part of parts) {
        hits.push(...part.hits);
        isPartial ||= part.isPartial;
      }
    }
    return { crawlers: names.slice(0, MAX_NAMES), hits: hits.slice(0, MAX_HITS), isPartial };
  };
}

function ownLatestFirst({ tokenType }: TokenOwner, { crawlers }: AccountOverview): Crawler[] {
  return crawlers
    .filter(({ crawler }) => crawler.tokenType === tokenType && !isInternal(crawler))
    .toSorted((a, b) => lastMs(b.counters.last) - lastMs(a.counters.last))
    .map(({ crawler }) => crawler);
}

function lastMs({ push, crawl, delivery }: CrawlerMoments): number {
  return Math.max(0, ...[push, crawl, delivery].map((at) => at?.getTime() ?? 0));
}
