import type { TokenType } from '../../domain/account.ts';
import { LEAST_STREAK } from '../../domain/attention.ts';
import type { DeliverySummary } from '../../domain/delivery.ts';
import { invalidPageToken } from '../../domain/errors.ts';
import type { HeaderPair } from '../../domain/job.ts';
import type { MatchFilter } from '../../domain/match-filter.ts';
import { CB_STATUS } from '../../domain/status.ts';
import { isPending } from '../kept-delivery.ts';
import { mapListing, partStart, partStartFrom, takePart, takeRows } from '../listing-cursor.ts';
import {
  type CrawlerOverview,
  type CrawlOutcome,
  type DeliveryFilter,
  type FoundRid,
  type JobSummary,
  LISTED_ATTEMPTS,
  LISTING_SCAN,
  type ListedJobState,
  type Listing,
  type ListingPart,
  type ListingStore,
  type ResultSummary,
  type TroubleLimits,
} from '../listing-store.ts';
import { isMatchingDelivery, isMatchingJob, isMatchingResult } from '../matches.ts';
import type { ResultSelection } from '../store.ts';
import { toCounters, toCrawler } from './crawler-row.ts';
import { SUMMARY_COLUMNS, toDeliverySummary } from './delivery-row.ts';
import { failedCrawls } from './failed-crawls.ts';
import type { InThread } from './in-thread.ts';
import { toJob, toJobFields } from './job-row.ts';
import { purgeCount } from './lease.ts';
import { toCrawlFields } from './pages.ts';
import { matching, type Sql, type SqlRow, toDate, toOptionalText } from './sql.ts';

function crawlers(
  sql: Sql,
  accountIds: readonly string[],
  limit: number,
  nameContains = '',
): CrawlerOverview[] {
  return accountIds.flatMap((accountId) =>
    sql
      .all(
        `${OVERVIEW} WHERE c.account_id = ? AND instr(lower(c.name), ?) > 0 ORDER BY c.name LIMIT ?`,
        accountId,
        nameContains,
        limit,
      )
      .map(toOverview),
  );
}

const OVERVIEW = `SELECT c.*, d.*, h.held_up FROM crawlers c JOIN dispatch d USING (crawler_id)
  LEFT JOIN known_hosts h USING (crawler_id)`;

const toOverview = (row: SqlRow) => ({ crawler: toCrawler(row), counters: toCounters(row) });

function troubled(
  sql: Sql,
  { queueLimit, heldAccounts }: TroubleLimits,
  limit: number,
): CrawlerOverview[] {
  const isEach = heldAccounts === 'all';
  return sql
    .all(
      `${OVERVIEW} WHERE c.paused_by_monitor = 1 OR d.crawl_failures >= ? OR d.delivery_failures >= ?
        OR d.waiting + d.retrying >= ? OR h.held_up IS NOT NULL OR (d.waiting + d.retrying > 0
          AND c.account_id IN (SELECT value FROM json_each(?)))
        ORDER BY crawler_id LIMIT ?`,
      LEAST_STREAK.crawl,
      LEAST_STREAK.delivery,
      isEach ? 1 : queueLimit,
      JSON.stringify(isEach ? [] : heldAccounts),
      limit,
    )
    .map(toOverview);
}

const JOB_COLUMNS =
  'rid, crawler_id, url, host, method, state, retry, created_at, due_at, first_tried_at, queue_deadline, last_failure, climbed, metadata, batch, again_of, not_before, priority';

function toJobSummary(row: SqlRow): JobSummary {
  const lastFailure = toOptionalText(row.last_failure);
  return { ...toJobFields(row), dueAt: toDate(row.due_at), lastFailure };
}

// The states are written out, so that the partial indexes are used.
const JOB_STATES = {
  retrying: "state = 'retrying'",
  // Few of those that are due before a waiting job are retries.
  waiting: "state <> 'running'",
} as const;

function jobs(
  sql: Sql,
  crawlerId: string,
  state: ListedJobState | undefined,
  part: ListingPart,
  matches?: MatchFilter,
): Listing<JobSummary> {
  const scheduledAfter = typeof state === 'object' ? state.scheduledAfter : undefined;
  const start = partStart(part) ?? { at: scheduledAfter ?? new Date(0), rid: '' };
  const scanned = sql.each(
    `SELECT ${JOB_COLUMNS} FROM jobs WHERE crawler_id = ? AND gen = ?
      AND ${JOB_STATES[state === 'retrying' ? state : 'waiting']} AND (due_at, rid) > (?, ?)
      ORDER BY due_at, rid LIMIT ${LISTING_SCAN}`,
    crawlerId,
    purgeCount(sql, crawlerId) ?? -1,
    start.at.getTime(),
    start.rid,
  );
  const isListed = (row: SqlRow) =>
    scheduledAfter === undefined
      ? state === undefined || row.state === state
      : row.state === 'waiting' && Number(row.not_before) > scheduledAfter.getTime();
  const isWanted = (row: SqlRow) =>
    isListed(row) && (matches === undefined || isMatchingJob(matches, toJobSummary(row)));
  return mapListing(takePart(scanned, part, isWanted, jobPlace), toJobSummary);
}

function jobsOfHost(
  sql: Sql,
  crawlerId: string,
  host: string,
  { limit }: Pick<ListingPart, 'limit'>,
  matches?: MatchFilter,
): Listing<JobSummary> {
  const scanned = sql.each(
    `SELECT ${JOB_COLUMNS} FROM jobs INDEXED BY jobs_by_host WHERE crawler_id = ? AND gen = ?
      AND state <> 'running' AND host = ? LIMIT ${LISTING_SCAN}`,
    crawlerId,
    purgeCount(sql, crawlerId) ?? -1,
    host,
  );
  const isWanted = (row: SqlRow) => isMatchingJob(matches, toJobSummary(row));
  return mapListing(takePart(scanned, { limit }, isWanted, jobPlace), toJobSummary);
}

const jobPlace = (row: SqlRow) => ({ at: toDate(row.due_at), rid: String(row.rid) });
const createdPlace = (row: SqlRow) => ({ at: toDate(row.created_at), rid: String(row.rid) });

function deliveries(
  sql: Sql,
  crawlerId: string,
  filter: DeliveryFilter,
  part: ListingPart,
): Listing<DeliverySummary> {
  const { state, outcome, range, matches } = filter;
  const isWanted = (row: SqlRow): boolean =>
    (matches === undefined || isMatchingDelivery(matches, toDeliverySummary(row))) &&
    (state === undefined || (isPending(row) ? 'pending' : row.state) === state) &&
    (outcome === undefined ||
      (Number(row.cb_status) === CB_STATUS.success ? 'completed' : 'failed') === outcome);
  const found =
    state === 'pending' && range === undefined
      ? takePart(pendingDeliveries(sql, crawlerId, part, filter.retried), part, isWanted, jobPlace)
      : takePart(deliveriesByAge(sql, crawlerId, filter, part), part, isWanted, createdPlace);
  return mapListing(found, (row) => toDeliverySummary(row, LISTED_ATTEMPTS));
}

/** By the next attempt. Those that are being sent are few, and keep the time they were due at. */
function* pendingDeliveries(
  sql: Sql,
  crawlerId: string,
  part: ListingPart,
  retried: true | undefined,
): Generator<SqlRow, void, undefined> {
  const start = partStart(part);
  const only = retried ? 'AND attempt > 0' : '';
  const select = (state: 'due' | 'sending') =>
    sql.each(
      `SELECT ${SUMMARY_COLUMNS} FROM deliveries WHERE crawler_id = ? AND state = '${state}' ${only}
        AND (due_at, rid) > (?, ?) ORDER BY due_at, rid LIMIT ${LISTING_SCAN}`,
      crawlerId,
      start?.at.getTime() ?? 0,
      start?.rid ?? '',
    );
  const order = (a: SqlRow, b: SqlRow): number =>
    Number(a.due_at) - Number(b.due_at) || (String(a.rid) < String(b.rid) ? -1 : 1);
  const sending = retried ? [] : [...select('sending')];
  let left = LISTING_SCAN;
  for (const due of select('due')) {
    while (sending[0] !== undefined && order(sending[0], due) < 0 && left-- > 0) {
      yield sending.shift() as SqlRow;
    }
    if (left-- <= 0) return;
    yield due;
  }
  yield* sending.slice(0, left);
}

function deliveriesByAge(
  sql: Sql,
  crawlerId: string,
  { state, outcome, range }: DeliveryFilter,
  part: ListingPart,
): Iterable<SqlRow> {
  const start = range === undefined ? partStart(part) : partStartFrom(part, range.from);
  const isFailed = outcome === 'failed' ? `cb_status <> ${CB_STATUS.success}` : 'TRUE';
  const { where, values } = matching([
    ['crawler_id = ?', crawlerId],
    [state === 'failed' ? "state = 'failed'" : isFailed],
    ['created_at < ?', range?.to.getTime()],
    [
      `(created_at, rid) ${range === undefined ? '<' : '>'} (?, ?)`,
      start?.at.getTime(),
      start?.rid,
    ],
  ]);
  const order = range === undefined ? 'DESC' : 'ASC';
  return sql.each(
    `SELECT ${SUMMARY_COLUMNS} FROM deliveries WHERE ${where}
      ORDER BY created_at ${order}, rid ${order} LIMIT ${LISTING_SCAN}`,
    ...values,
  );
}

const RESULT_COLUMNS =
  'rid, account_id, token_type, crawler_id, seq, url, pushed_url, cb_status, original_status, content_type, extras, stored_at, expires_at, size';

/** By their numbers, which are in the order of storing. */
function results(
  sql: Sql,
  { accountId, tokenType, crawlerId }: ResultSelection,
  outcome: CrawlOutcome | undefined,
  { limit, cursor }: ListingPart,
  matches?: MatchFilter,
): Listing<ResultSummary> {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw invalidPageToken();
  const { where, values } = matching([
    crawlerId === undefined
      ? ['account_id = ? AND token_type = ?', accountId, tokenType]
      : ['crawler_id = ?', crawlerId],
    [outcome === 'failed' ? `cb_status <> ${CB_STATUS.success}` : 'TRUE'],
    ['seq < ?', cursor === undefined ? undefined : Number(cursor)],
  ]);
  const scanned = sql.each(
    `SELECT ${RESULT_COLUMNS} FROM results WHERE ${where}
      ORDER BY seq DESC LIMIT ${LISTING_SCAN}`,
    ...values,
  );
  const isWanted = (row: SqlRow): boolean =>
    (outcome !== 'completed' || Number(row.cb_status) === CB_STATUS.success) &&
    (matches === undefined || isMatchingResult(matches, toResultSummary(row)));
  const { rows, last } = takeRows(scanned, { limit }, isWanted);
  return {
    rows: rows.map(toResultSummary),
    cursor: last === undefined ? undefined : String(last.seq),
  };
}

function toResultSummary(row: SqlRow): ResultSummary {
  return {
    ...toCrawlFields(row),
    storedAt: toDate(row.stored_at),
    expiresAt: toDate(row.expires_at),
    size: Number(row.size),
    ...(row.crawler_id === null ? {} : { crawlerId: String(row.crawler_id) }),
  };
}

function locate(sql: Sql, rid: string): FoundRid {
  const job = sql.get(
    `SELECT jobs.* FROM jobs JOIN dispatch d USING (crawler_id)
      WHERE rid = ? AND (gen = d.purges OR state = 'running')`,
    rid,
  );
  const delivery = sql.get('SELECT * FROM deliveries WHERE rid = ?', rid);
  const result = sql.get(`SELECT ${RESULT_COLUMNS}, request FROM results WHERE rid = ?`, rid);
  return {
    ...(result === undefined ? {} : { result: locatedResult(result) }),
    ...(job === undefined ? {} : { job: { ...toJob(job), ...toJobSummary(job) } }),
    ...(delivery === undefined ? {} : { delivery: locatedDelivery(delivery) }),
  };
}

function locatedDelivery(row: SqlRow): NonNullable<FoundRid['delivery']> {
  return {
    ...toCrawlFields(row),
    ...toDeliverySummary(row),
    crawlerId: String(row.crawler_id),
    callbackHeaders: JSON.parse(String(row.callback_headers)) as HeaderPair[],
    traceparent: toOptionalText(row.traceparent),
    request: toOptionalText(row.request),
  };
}

function locatedResult(row: SqlRow): NonNullable<FoundRid['result']> {
  return {
    ...toResultSummary(row),
    accountId: String(row.account_id),
    tokenType: row.token_type as TokenType,
    request: toOptionalText(row.request),
  };
}

/** Listings for people. */
export const listings = {
  crawlers,
  troubled,
  jobs,
  jobsOfHost,
  deliveries,
  results,
  failedCrawls,
  locate,
} satisfies InThread<ListingStore>;
