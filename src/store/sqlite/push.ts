import { DEFAULT_PRIORITY } from '../../domain/priority.ts';
import { EPISODE_END, PUSH_REQUEST_MS } from '../rules.ts';
import type { PushLimits, PushOutcome, PushReceipt } from '../store.ts';
import { openBatches } from './batch-counts.ts';
import { createCounts } from './counts.ts';
import { wakeBy } from './lease.ts';
import { AT, COLUMNS, type JobRow, type PushRows, type RowsReceipt } from './push-rows.ts';
import { insertRow, placeholders, type Sql, type SqlRow, toOptionalText } from './sql.ts';
import { firstOfKey, takeKey } from './unique-keys.ts';

/** Checks the limits and inserts the jobs; see `QueueStore.push`. */
export function push(sql: Sql, ...args: PushArguments): RowsReceipt {
  return pushTogether(sql, [args])[0] as RowsReceipt;
}

/** The arguments of `QueueStore.push`. */
export type PushArguments = readonly [request: PushRows, limits: PushLimits, now: Date];

/**
 * Performs calls of `push` of one transaction, in order. Crawlers and accounts are read once for all
 * of them, and counters are written once.
 */
export function pushTogether(sql: Sql, calls: readonly PushArguments[]): RowsReceipt[] {
  const targets = new Map<string, Target | undefined>();
  const accounts = new Map<string, AccountRoom>();
  const counts = createCounts();

  function targetOf({ crawlerId, accountId }: PushRows, now: Date): Target | undefined {
    if (targets.has(crawlerId)) return targets.get(crawlerId);
    const row = readTarget(sql, crawlerId, accountId);
    let target: Target | undefined;
    if (row !== undefined) {
      const account = accounts.get(accountId) ?? { ...row.account, wasOver: row.account.isOver };
      accounts.set(accountId, account);
      target = { ...row, account, batches: openBatches(sql, crawlerId, now), accepted: 0 };
    }
    targets.set(crawlerId, target);
    return target;
  }

  function pushOne([request, limits, now]: PushArguments): RowsReceipt {
    const { rows } = request;
    const target = targetOf(request, now);
    const settings = request.settings ?? target?.settings;
    if (target === undefined || target.settings !== settings) {
      const refused = { refused: 'crawler_not_found' } as const;
      return { outcomes: rows.map(() => refused), crossedAccountLimit: false, leased: false };
    }
    const { account } = target;
    const leased = target.leaseUntil > now.getTime();
    const known = findOutcomes(sql, request, now);
    if (known !== undefined) return { ...known, crossedAccountLimit: false, leased };
    const queuedBefore = account.queued;
    const { outcomes, accepted, bytes } = insertAccepted(sql, request, { limits, target, now });
    notePriorities(sql, request, target);
    if (accepted > 0) {
      const changes = counts.of(request.crawlerId);
      changes.add('waiting', accepted);
      changes.add('queuedBytes', bytes);
      changes.addDay('pushed', accepted);
      changes.happened('push');
    }
    if (outcomes.some((each) => 'rid' in each)) keepOutcomes(sql, request, outcomes, now);
    const receipt = { crossedAccountLimit: updateEpisode(account, queuedBefore, limits), leased };
    return accepted === rows.length ? receipt : { outcomes, ...receipt };
  }

  const receipts = calls.map(pushOne);
  const now = calls.at(-1)?.[2] ?? new Date(0);
  counts.write(sql, now);
  for (const [crawlerId, target] of targets) {
    if (target === undefined || target.accepted === 0) continue;
    target.batches.write();
    wakeBy(sql, crawlerId, now, 'job');
  }
  for (const [accountId, { isOver, wasOver }] of accounts) {
    if (isOver === wasOver) continue;
    sql.run('UPDATE accounts SET over_limit = ? WHERE account_id = ?', Number(isOver), accountId);
  }
  return receipts;
}

/** What the pushes to an account are checked against. */
interface AccountRoom {
  /** Its waiting and retrying URLs. */
  queued: number;
  /** Whether it is in an episode over its limit, as of the push before. */
  isOver: boolean;
  /** The same, as stored. */
  readonly wasOver: boolean;
}

/** The crawler of pushes, with what was changed since it was read. */
type Target = NonNullable<ReturnType<typeof readTarget>> & {
  readonly account: AccountRoom;
  readonly batches: ReturnType<typeof openBatches>;
  /** How many jobs were inserted. */
  accepted: number;
};

/** Undefined when the crawler is gone. */
function readTarget(sql: Sql, crawlerId: string, accountId: string) {
  const row = sql.get(
    `SELECT waiting + retrying AS held, lease_until, purges, has_priorities,
        (SELECT updated_at FROM crawlers c WHERE c.crawler_id = d.crawler_id) AS settings,
        (SELECT queued FROM accounts WHERE account_id = ?) AS queued,
        (SELECT over_limit FROM accounts WHERE account_id = ?) AS over_limit
      FROM dispatch d WHERE crawler_id = ?`,
    accountId,
    accountId,
    crawlerId,
  );
  if (row === undefined) return undefined;
  return {
    /** `CrawlerChanges.settings`. */
    settings: Number(row.settings),
    /** Its waiting and retrying URLs. */
    held: Number(row.held),
    account: { queued: Number(row.queued), isOver: row.over_limit === 1 },
    purges: Number(row.purges),
    hasPriorities: row.has_priorities === 1,
    leaseUntil: Number(row.lease_until),
  };
}

/** What an earlier call of the same request left. */
type Known = Pick<PushReceipt, 'outcomes' | 'places'>;

/** The outcomes of an earlier call of the same request. */
function findOutcomes(sql: Sql, { crawlerId, requestId }: PushRows, now: Date): Known | undefined {
  if (requestId === undefined) return undefined;
  const row = sql.get(
    `SELECT outcomes FROM push_requests
      WHERE crawler_id = ? AND request_id = ? AND expires_at > ?`,
    crawlerId,
    requestId,
    now.getTime(),
  );
  if (row === undefined) return undefined;
  return readOutcomes(row);
}

/** What a row of `push_requests` holds. */
export function readOutcomes({ outcomes }: SqlRow): Known {
  const known = JSON.parse(String(outcomes)) as Known | PushOutcome[];
  // Version 0.2.0 wrote the outcomes alone.
  return Array.isArray(known) ? { outcomes: known } : known;
}

/** Keeps the outcomes for a repetition of the request. */
function keepOutcomes(
  sql: Sql,
  { crawlerId, requestId, places }: PushRows,
  outcomes: readonly PushOutcome[],
  now: Date,
): void {
  if (requestId === undefined) return;
  const row = {
    crawler_id: crawlerId,
    request_id: requestId,
    outcomes: JSON.stringify({ outcomes, places }),
    expires_at: now.getTime() + PUSH_REQUEST_MS,
  };
  const replaced = 'outcomes = excluded.outcomes, expires_at = excluded.expires_at';
  insertRow(sql, 'push_requests', row, `DO UPDATE SET ${replaced}`);
}

/** Inserts the jobs that there is room for. */
function insertAccepted(
  sql: Sql,
  { crawlerId, accountId, rows, untils }: PushRows,
  {
    limits,
    target,
    now,
  }: { readonly limits: PushLimits; readonly target: Target; readonly now: Date },
) {
  const { account, purges } = target;
  const before = target.accepted;
  let bytes = 0;
  const outcomes = rows.map((row, at): PushOutcome => {
    const rid = String(row[AT.rid]);
    const key = toOptionalText(row[AT.unique_key]);
    if (key !== undefined) {
      const first = firstOfKey(sql, crawlerId, key, purges, now);
      if (first !== undefined) return { rid: first, duplicate: true };
    }
    if (account.queued > limits.accountQueue) return { refused: 'account_queue_full' };
    if (target.held >= limits.crawlerQueue) return { refused: 'crawler_queue_full' };
    const name = toOptionalText(row[AT.batch]);
    const batch = name === undefined ? undefined : target.batches.open(name);
    if (batch !== undefined && 'refused' in batch) return batch;
    const insert = INSERTS[row.length - 1] ?? '';
    sql.run(insert, crawlerId, accountId, purges, batch?.batchId ?? null, ...row);
    if (key !== undefined) takeKey(sql, { crawlerId, key, rid, gen: purges, until: untils?.[at] });
    bytes += Number(row[AT.size]);
    target.held += 1;
    target.accepted += 1;
    account.queued += 1;
    return { rid };
  });
  return { outcomes, accepted: target.accepted - before, bytes };
}

/** Looks of a crawler go by age alone until a job has another priority than the default. */
function notePriorities(sql: Sql, { crawlerId, rows }: PushRows, target: Target): void {
  const isDefault = (row: JobRow): boolean => row[AT.priority] === DEFAULT_PRIORITY;
  if (target.hasPriorities || rows.every(isDefault)) return;
  target.hasPriorities = true;
  sql.run('UPDATE dispatch SET has_priorities = 1 WHERE crawler_id = ?', crawlerId);
}

/**
 * Notes whether the account is over its limit; true if this push took it over. An episode ends below
 * a part of the limit.
 */
function updateEpisode(account: AccountRoom, queuedBefore: number, limits: PushLimits): boolean {
  const wasOver = account.isOver && queuedBefore > limits.accountQueue * EPISODE_END;
  const isOver = account.queued > limits.accountQueue;
  account.isOver = wasOver || isOver;
  return isOver && !wasOver;
}

/** By the number of columns that the row fills. */
const INSERTS = COLUMNS.map((_, at) => {
  const columns = ['crawler_id', 'account_id', 'gen', 'batch_id', ...COLUMNS.slice(0, at + 1)];
  return `INSERT INTO jobs (${columns.join(', ')}, state) VALUES (${placeholders(columns)}, 'waiting')`;
});
