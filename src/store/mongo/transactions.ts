import { setTimeout as delay } from 'node:timers/promises';
import {
  type Binary,
  type ClientSession,
  type Db,
  Long,
  MongoError,
  MongoNetworkError,
  type TransactionOptions,
} from 'mongodb';
import { databaseUnavailable } from '../../domain/errors.ts';
import type { TransactionCounts } from '../store.ts';
import { clientOptions } from './client-options.ts';
import { isConflict, isUnknownCommand } from './mongo-errors.ts';

/** Transactions over several documents. */
export interface Transactions {
  /**
   * Runs `body` in a transaction and commits it. `body` is run again after a conflict with another
   * write, and must do nothing that the transaction does not undo. An error that it throws aborts
   * the transaction.
   */
  run<T>(body: (session: ClientSession) => Promise<T>, options?: RunOptions): Promise<T>;
  startSession(): ClientSession;
  /**
   * Runs `work`. When it waits for a while, aborts the transactions that are open in the sessions
   * that are found. The process of one may have died, and the server would keep its locks for a
   * minute.
   */
  unblocked<T>(findSessions: () => Promise<readonly Binary[]>, work: () => Promise<T>): Promise<T>;
  /** Aborts the transactions that are open in these sessions, of any process. */
  abort(sessionIds: readonly Binary[]): Promise<void>;
  counts(): TransactionCounts;
}

/** Options of {@link Transactions.run}. */
export interface RunOptions {
  /** The session to use; nothing else may use it until the end. A new one if absent. */
  readonly session?: ClientSession;
  /**
   * Whether the transaction is committed, asked when the answer to a commit was lost. Without it
   * `body` is run again, and must find what it has done before.
   */
  readonly wasCommitted?: () => Promise<boolean>;
}

/** Longer than a commit takes that is only slow. */
const MAX_COMMIT_MS = 5_000;
/** Tries of one transaction, and of one commit. */
const MAX_TRIES = 20;
const MAX_COMMITS = 3;
/**
 * Tries of a transaction that lost its connection: callers repeat what fails while the database is
 * unavailable.
 */
const MAX_CONNECTIONS = 3;
/** No try begins later than this after the first. */
const MAX_RETRIES_MS = 5_000;
/** Longer than a transaction takes that makes progress. */
const BLOCKED_MS = 300;
/** The longest pause before the second try; it doubles up to the second number. */
const FIRST_PAUSE_MS = 10;
const MAX_PAUSE_MS = 200;

const OPTIONS = {
  readConcern: { level: 'snapshot' },
  writeConcern: clientOptions.writeConcern,
  readPreference: 'primary',
  maxCommitTimeMS: MAX_COMMIT_MS,
} as const satisfies TransactionOptions;

/** Runs transactions in sessions that `startSession` makes. */
export function createTransactions(
  startSession: () => ClientSession,
  admin: Pick<Db, 'command'>,
): Transactions {
  let committed = 0;
  let aborted = 0;

  /** Commits; true when it is known to be committed, false when it is known that it is not. */
  async function commit(session: ClientSession, { wasCommitted }: RunOptions): Promise<boolean> {
    for (let tries = 1; ; tries += 1) {
      try {
        await session.commitTransaction();
        return true;
      } catch (error) {
        // The driver's own code fails with a TypeError when the socket does; nothing is known then, either.
        const isUnknown =
          !(error instanceof MongoError) || hasLabel(error, 'UnknownTransactionCommitResult');
        if (isUnknown && tries < MAX_COMMITS) continue;
        // A server that forgets transactions that have ended says the same of one that it has committed.
        if (await wasCommitted?.()) return true;
        if (hasLabel(error, 'TransientTransactionError')) return false;
        throw error instanceof MongoError ? error : databaseUnavailable(undefined, error);
      }
    }
  }

  async function runIn<T>(
    session: ClientSession,
    body: (session: ClientSession) => Promise<T>,
    options: RunOptions,
  ): Promise<T> {
    const until = performance.now() + MAX_RETRIES_MS;
    for (let tries = 1; ; tries += 1) {
      session.startTransaction(OPTIONS);
      let failure: Error | undefined;
      try {
        const value = await body(session);
        if (await commit(session, options)) {
          committed += 1;
          return value;
        }
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
      }
      if (session.inTransaction()) await session.abortTransaction().catch(() => undefined);
      if (failure !== undefined && !isTransient(failure)) throw failure;
      aborted += 1;
      const most = failure instanceof MongoNetworkError ? MAX_CONNECTIONS : MAX_TRIES;
      if (tries >= most || performance.now() > until) throw failure ?? conflict();
      await delay(Math.random() * Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries));
    }
  }

  /** Sends the command of the session's own client. */
  async function abortOne(id: Binary): Promise<void> {
    await using session = startSession();
    session.serverSession.id = { id };
    // So that nobody else here is given that session.
    session.serverSession.isDirty = true;
    const abortion = { abortTransaction: 1, txnNumber: Long.ONE, autocommit: false };
    await admin.command(abortion, { session });
  }

  async function abort(sessionIds: readonly Binary[]): Promise<void> {
    if (sessionIds.length === 0) return;
    try {
      await admin.command({ killSessions: sessionIds.map((id) => ({ id })) });
    } catch (error) {
      if (!isUnknownCommand(error)) return;
      // A server that is only compatible with MongoDB.
      await Promise.all(sessionIds.map((id) => abortOne(id).catch(() => undefined)));
    }
  }

  return {
    startSession,
    async run(body, options = {}) {
      if (options.session !== undefined) return runIn(options.session, body, options);
      await using session = startSession();
      return await runIn(session, body, options);
    },
    async unblocked(findSessions, work) {
      let waitMs = BLOCKED_MS;
      const abortLater = (): NodeJS.Timeout =>
        setTimeout(() => {
          void findSessions()
            .then(abort)
            .catch(() => undefined);
          // A living process repeats its transaction, which on a busy server takes a while.
          waitMs *= 2;
          timer = abortLater();
        }, waitMs);
      let timer = abortLater();
      try {
        return await work();
      } finally {
        clearTimeout(timer);
      }
    },
    abort,
    counts: () => ({ committed, aborted }),
  };
}

/** Whether the transaction may be repeated. A compatible server may not label a conflict of one of several writes. */
function isTransient(error: Error): boolean {
  return hasLabel(error, 'TransientTransactionError') || isConflict(error);
}

function hasLabel(error: unknown, label: string): boolean {
  return error instanceof MongoError && error.hasErrorLabel(label);
}

function conflict(): MongoError {
  const error = new MongoError('The transaction was aborted again and again.');
  error.addErrorLabel('TransientTransactionError');
  return error;
}
