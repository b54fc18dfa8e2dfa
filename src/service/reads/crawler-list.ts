import type { TokenOwner } from '../../domain/account.ts';
import { isPaused } from '../../domain/crawler.ts';
import { isInternal } from '../../domain/crawler-name.ts';
import { invalidField, invalidPageToken } from '../../domain/errors.ts';
import type { Overviews, RatedCrawler } from './overviews.ts';

/** The number that each order of the list compares, smallest first; `name` has none. */
const crawlerOrders = {
  name: undefined,
  waiting: ({ counters }) => counters.waiting,
  running: ({ counters }) => counters.running,
  retrying: ({ counters }) => counters.retrying,
  completed: ({ counters }) => counters.completed,
  failed: ({ counters }) => counters.failed,
  deliveriesPending: ({ counters }) => counters.deliveriesPending,
  rate: ({ rates }) => (rates === undefined ? 0 : rates.completed + rates.failed),
  lastPush: ({ counters }) => counters.last.push?.getTime() ?? 0,
  lastCrawl: ({ counters }) => counters.last.crawl?.getTime() ?? 0,
  created: ({ crawler }) => crawler.createdAt.getTime(),
} as const satisfies Record<string, ((row: RatedCrawler) => number) | undefined>;

/** An order of the list. */
export type CrawlerOrder = keyof typeof crawlerOrders;

/** Which crawlers are listed, and how. */
export interface CrawlerListing {
  /** Empty for all. */
  readonly nameContains: string;
  readonly status: 'running' | 'paused' | undefined;
  readonly needsAttention: boolean;
  readonly order: CrawlerOrder;
  readonly descending: boolean;
  readonly limit: number;
  /** As the page before returned it; empty for the first. */
  readonly cursor: string;
}

/** A page of crawlers with what they do. */
export interface CrawlerPage {
  readonly crawlers: readonly RatedCrawler[];
  /** Empty on the last page. */
  readonly cursor: string;
  /** All that pass the filter. */
  readonly total: number;
  /** Whether crawlers were left out, as the account has too many. */
  readonly isPartial: boolean;
}

const MAX_FILTER = 64;

/** Lists the crawlers that a token addresses, with what they do, in one query. */
export type ListCrawlers = (owner: TokenOwner, listing: CrawlerListing) => Promise<CrawlerPage>;

/** Makes the list. Throws `invalid` for a filter that is too long, and for an unknown cursor. */
export function createCrawlerList(deps: {
  readonly overviews: Pick<Overviews, 'read' | 'readNamed'>;
}): ListCrawlers {
  return async (owner, listing) => {
    const { nameContains } = listing;
    const passes = createCrawlerFilter(owner, nameContains);
    const { accountId } = owner.account;
    const { crawlers, isPartial } =
      nameContains === ''
        ? await deps.overviews.read(accountId)
        : await deps.overviews.readNamed(accountId, nameContains);
    const { status, needsAttention } = listing;
    const found = crawlers.filter(
      (row) =>
        passes(row) &&
        (!needsAttention || row.attention.length > 0) &&
        (status === undefined || status === (isPaused(row.crawler) ? 'paused' : 'running')),
    );
    const sorted = inOrder(found, listing);
    const start = startAt(sorted, listing);
    const page = sorted.slice(start, start + listing.limit);
    return {
      crawlers: page,
      cursor: nextCursor(sorted, start + page.length, listing),
      total: found.length,
      isPartial,
    };
  };
}

/** Whether a crawler is addressed by the token and has a name with `text`. Throws `invalid`. */
export function createCrawlerFilter(
  owner: Pick<TokenOwner, 'tokenType'>,
  text: string,
): (row: Pick<RatedCrawler, 'crawler'>) => boolean {
  if (text.length > MAX_FILTER) {
    throw invalidField('name_contains', `name_contains has at most ${MAX_FILTER} characters.`);
  }
  const wanted = text.toLowerCase();
  return ({ crawler }) =>
    crawler.tokenType === owner.tokenType &&
    !isInternal(crawler) &&
    (wanted === '' || crawler.name.toLowerCase().includes(wanted));
}

/** The overview has them by name. */
function inOrder(
  rows: readonly RatedCrawler[],
  { order, descending }: CrawlerListing,
): readonly RatedCrawler[] {
  const value = crawlerOrders[order];
  if (value === undefined) return descending ? rows.toReversed() : rows;
  const sign = descending ? -1 : 1;
  // The sort is stable: names decide between equals.
  return rows.toSorted((a, b) => sign * (value(a) - value(b)));
}

/** By name a page continues behind a name, otherwise at a position. */
function startAt(
  rows: readonly RatedCrawler[],
  { order, descending, cursor }: CrawlerListing,
): number {
  if (cursor === '') return 0;
  if (order === 'name') {
    const isBehind = ({ crawler }: RatedCrawler) =>
      descending ? crawler.name < cursor : crawler.name > cursor;
    const index = rows.findIndex(isBehind);
    return index < 0 ? rows.length : index;
  }
  if (!/^\d{1,6}$/.test(cursor)) throw invalidPageToken();
  return Number(cursor);
}

function nextCursor(rows: readonly RatedCrawler[], end: number, { order }: CrawlerListing): string {
  if (end >= rows.length) return '';
  return order === 'name' ? (rows[end - 1]?.crawler.name ?? '') : String(end);
}
