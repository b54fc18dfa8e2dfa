import type { TokenOwner } from '../../domain/account.ts';
import { type DeliverySummary, deliveryReason } from '../../domain/delivery.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import type { JobSummary, Listing, ResultSummary, Store } from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';

/** What failed: a crawl, a try whose job waits for another one, a delivery, tried again or given up. */
export type FailureKind = 'crawl' | 'retry' | 'delivery';

/** One failure. */
export interface Failure {
  readonly rid: string;
  readonly url: string;
  readonly at: Date;
  /** For a person; empty when the reason says it all. */
  readonly detail: string;
}

/** Failures of the same reason and statuses. */
export interface FailureGroup {
  readonly reason: string;
  /** 0 for retries and deliveries. */
  readonly cbStatus: number;
  /** Of the target or of the callback URL; 0 when it gave none. */
  readonly originalStatus: number;
  readonly count: number;
  /** Those of them that are tried again. */
  readonly pending: number;
  /** The latest, {@link MAX_EXAMPLES} at most. */
  readonly examples: readonly [Failure, ...Failure[]];
}

/** The latest failures of a crawler in groups. */
export interface FailureGroups {
  /** The largest first. */
  readonly groups: readonly FailureGroup[];
  readonly examined: number;
  readonly hasMore: boolean;
}

/** Groups the latest failures of a crawler. Throws as {@link CrawlerAccess} does. */
export type ListFailures = (
  owner: TokenOwner,
  crawlerName: string,
  kind: FailureKind,
) => Promise<FailureGroups>;

const MAX_EXAMINED = 2_000;
const MAX_EXAMPLES = 5;
/** Reasons are few; the statuses of sites and texts of errors may be many. */
const MAX_GROUPS = 100;

type Reasoned = Failure &
  Pick<FailureGroup, 'reason' | 'cbStatus' | 'originalStatus'> & { readonly isPending?: boolean };

/** Makes the grouping. */
export function createFailureGroups(deps: {
  readonly listings: Store['listings'];
  readonly access: Pick<CrawlerAccess, 'find'>;
}): ListFailures {
  const { listings, access } = deps;

  return async (owner, crawlerName, kind) => {
    const { accountId, tokenType, crawlerId, delivery } = await access.find(owner, crawlerName);
    const part = { limit: MAX_EXAMINED };
    if (kind === 'retry') return grouped(await listings.jobs(crawlerId, 'retrying', part), ofRetry);
    if (kind === 'delivery') {
      const [retried, failed] = await Promise.all([
        listings.deliveries(crawlerId, { state: 'pending', retried: true }, part),
        listings.deliveries(crawlerId, { state: 'failed' }, part),
      ]);
      const rows = [...retried.rows, ...failed.rows];
      const cursor = rows.length > MAX_EXAMINED ? '' : (retried.cursor ?? failed.cursor);
      return grouped({ rows: rows.slice(0, MAX_EXAMINED), cursor }, ofDelivery);
    }
    if (deliveryModes[delivery].delivers) {
      const filter = { outcome: 'failed' } as const;
      return grouped(await listings.deliveries(crawlerId, filter, part), ofCrawl);
    }
    const selection = { accountId, tokenType, crawlerId };
    return grouped(await listings.results(selection, 'failed', part), ofCrawl);
  };
}

function grouped<Row>(
  { rows, cursor }: Listing<Row>,
  toFailure: (row: Row) => Reasoned,
): FailureGroups {
  const failures = rows.map(toFailure);
  const byReason = Map.groupBy(failures, ({ reason, cbStatus, originalStatus }) =>
    [reason, cbStatus, originalStatus].join(' '),
  );
  const groups = [...byReason.values()]
    .flatMap((same): FailureGroup[] => {
      const [first, ...others] = same;
      if (first === undefined) return [];
      const { reason, cbStatus, originalStatus } = first;
      const examples = [first, ...others.slice(0, MAX_EXAMPLES - 1)] as const;
      const pending = same.filter(({ isPending }) => isPending).length;
      return [{ reason, cbStatus, originalStatus, count: same.length, pending, examples }];
    })
    .sort((a, b) => b.count - a.count)
    .slice(0, MAX_GROUPS);
  return { groups, examined: failures.length, hasMore: cursor !== undefined };
}

function ofRetry({ rid, url, dueAt, lastFailure = '', retry }: JobSummary): Reasoned {
  return {
    rid,
    url,
    at: dueAt,
    reason: lastFailure,
    cbStatus: 0,
    originalStatus: 0,
    detail: `tried ${retry} ${retry === 1 ? 'time' : 'times'}`,
    isPending: true,
  };
}

function ofCrawl(row: DeliverySummary | ResultSummary): Reasoned {
  const { rid, pushedUrl, cbStatus, originalStatus } = row;
  const reason = ('details' in row ? row.details.failure : row.failure) ?? '';
  const at = 'storedAt' in row ? row.storedAt : row.createdAt;
  const detail = row.url === pushedUrl ? '' : row.url;
  return { rid, url: pushedUrl, at, reason, cbStatus, originalStatus, detail };
}

function ofDelivery(delivery: DeliverySummary): Reasoned {
  const { rid, pushedUrl, createdAt, attempts, state } = delivery;
  const last = attempts.at(-1);
  return {
    rid,
    url: pushedUrl,
    at: createdAt,
    reason: deliveryReason(delivery),
    cbStatus: 0,
    originalStatus: last?.status ?? 0,
    detail: last?.error ?? '',
    isPending: state === 'pending',
  };
}
