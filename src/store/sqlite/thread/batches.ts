import { saveServiceTime } from '../saved-time.ts';
import type { Sql } from '../sql.ts';
import {
  type Answer,
  type BatchMessage,
  type CallMessage,
  toErrorMessage,
} from './database-messages.ts';
import type { DiskSync } from './disk-sync.ts';
import type { LogMark } from './log-mark.ts';
import { joined, operations, reads } from './operations.ts';

/** Performs calls, many in one transaction and one sync to disk. */
export interface Batches {
  /**
   * Performs calls now, or after the batch that is being made durable. Reads do not wait for that;
   * what they see of it may still be lost with the machine's power, but not with the process.
   */
  take(calls: readonly CallMessage[]): void;
  /** Resolves when all calls have been answered. */
  settled(): Promise<void>;
}

/** What the batches work with. */
export interface BatchesDeps {
  readonly sql: Sql;
  readonly disk: DiskSync;
  readonly mark: LogMark;
  readonly answer: (message: BatchMessage) => void;
}

/**
 * Answered before its batch is durable, like reads: leases do not outlive the process, whose start
 * voids them all.
 */
const LEASE = 'queue.acquire';
const answersEarly = (operation: string): boolean => reads.has(operation) || operation === LEASE;

const MAX_BATCH = 1_000;
/** Pages of the log, 4 MB, that are moved into the database at once. */
const MANY_LOGGED = 1_000;

/** Makes the batches of a connection that is in WAL mode and syncs nothing when it commits. */
export function createBatches({ sql, disk, mark, answer }: BatchesDeps): Batches {
  /** Writes that arrived while a batch was made durable. */
  const held: CallMessage[] = [];
  let working: Promise<void> | undefined;

  /**
   * Moves the log into the database when it has become long. The database is synced before the next
   * write, because that may begin to overwrite the log.
   */
  async function moveLog(): Promise<void> {
    const { log, checkpointed } = sql.get('PRAGMA wal_checkpoint(NOOP)') ?? {};
    if (Number(log) - Number(checkpointed) < MANY_LOGGED) return;
    sql.exec('PRAGMA synchronous = OFF');
    try {
      sql.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The next one takes it along.
    } finally {
      sql.exec('PRAGMA synchronous = NORMAL');
    }
    await disk.sync('database');
  }

  async function work(calls: readonly CallMessage[]): Promise<void> {
    const { answers, committed, refused } = performBatch(sql, calls, mark);
    if (!committed) {
      answer({ answers, committed, refused });
      return;
    }
    const isEarly = (_: unknown, at: number): boolean => answersEarly(calls[at]?.operation ?? '');
    const early = answers.filter(isEarly);
    if (early.length > 0) answer({ answers: early, committed: false, refused: false });
    await disk.sync('log');
    mark.write();
    answer({ answers: answers.filter((each, at) => !isEarly(each, at)), committed, refused });
    await moveLog();
  }

  async function workOff(): Promise<void> {
    while (held.length > 0) await work(held.splice(0, MAX_BATCH));
    working = undefined;
  }

  return {
    take(calls) {
      if (working === undefined) {
        held.push(...calls);
        working = workOff();
        return;
      }
      const early = calls.filter(({ operation }) => reads.has(operation));
      if (early.length > 0) answer(performBatch(sql, early));
      held.push(...calls.filter(({ operation }) => !reads.has(operation)));
    },
    async settled() {
      await working;
    },
  };
}

/**
 * Runs calls in one transaction, which `mark` counts if it writes; without it they must not write.
 * Each of them fails if it cannot be committed.
 */
function performBatch(sql: Sql, calls: readonly CallMessage[], mark?: LogMark): BatchMessage {
  let begun = false;
  try {
    const before = countChanges(sql);
    sql.exec('BEGIN');
    begun = true;
    const groups = grouped(calls);
    const answers = groups.flatMap((group) =>
      calls.length === 1 ? run(sql, group) : perform(sql, group),
    );
    const committed = countChanges(sql) !== before;
    if (committed && mark === undefined) throw new Error('a read has written');
    if (committed) {
      saveServiceTime(sql, calls.at(-1)?.nowMs ?? 0);
      mark?.count();
    }
    sql.exec('COMMIT');
    return { answers, committed, refused: answers.some(isRefused) };
  } catch (error) {
    // The whole batch was rolled back, so every call in it fails.
    const failure = toErrorMessage(error);
    if (begun) tryRollback(sql);
    const refused = calls.map(({ id }): Answer => ({ id, error: failure }));
    const asked = calls.filter(({ operation }) => reads.has(operation));
    // Reads are answered whatever the disk refuses to write.
    const isMixed = asked.length > 0 && asked.length < calls.length;
    const read = new Map(
      (isMixed ? performBatch(sql, asked).answers : []).map((each) => [each.id, each]),
    );
    const answers = refused.map((each) => read.get(each.id) ?? each);
    return { answers, committed: false, refused: refused.some(isRefused) };
  }
}

/** Primary result codes of SQLite: SQLITE_READONLY, SQLITE_IOERR and SQLITE_FULL. */
const REFUSED_BY_DISK: readonly number[] = [8, 10, 13];

function isRefused(answer: Answer): boolean {
  const cause = 'error' in answer ? answer.error.cause : undefined;
  // The lowest byte of a result code is its primary code.
  return (
    cause instanceof Error &&
    'errcode' in cause &&
    REFUSED_BY_DISK.includes(Number(cause.errcode) & 0xff)
  );
}

/** Calls that follow one another and are performed together, else alone. */
function grouped(calls: readonly CallMessage[]): readonly (readonly CallMessage[])[] {
  const groups: CallMessage[][] = [];
  for (const call of calls) {
    const last = groups.at(-1);
    if (joined.has(call.operation) && last?.[0]?.operation === call.operation) last.push(call);
    else groups.push([call]);
  }
  return groups;
}

/** Runs calls that others share a transaction with: if they fail, the others do not. */
function perform(sql: Sql, calls: readonly CallMessage[]): readonly Answer[] {
  sql.exec('SAVEPOINT call');
  try {
    const answers = run(sql, calls);
    sql.exec('RELEASE call');
    return answers;
  } catch (error) {
    sql.exec('ROLLBACK TO call');
    sql.exec('RELEASE call');
    if (calls.length > 1) return calls.flatMap((call) => perform(sql, [call]));
    return calls.map(({ id }) => ({ id, error: toErrorMessage(error) }));
  }
}

function run(sql: Sql, calls: readonly CallMessage[]): readonly Answer[] {
  const [{ operation, aheadMs, args }] = calls as readonly [CallMessage];
  sql.aheadMs = aheadMs;
  if (calls.length > 1) {
    const values = joined.get(operation)?.(
      sql,
      calls.map((call) => call.args),
    );
    return calls.map(({ id }, at) => ({ id, value: values?.[at] }));
  }
  const known = operations.get(operation);
  if (known === undefined) throw new Error(`there is no operation ${operation}`);
  return calls.map(({ id }) => ({ id, value: known(sql, ...(args as never[])) }));
}

function countChanges(sql: Sql): number {
  return Number(sql.get('SELECT total_changes() AS n')?.n);
}

function tryRollback(sql: Sql): void {
  try {
    sql.exec('ROLLBACK');
  } catch {
    // A failed COMMIT may have rolled back by itself.
  }
}
