import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient, type MongoClientOptions } from 'mongodb';
import { withDeadline } from '../../domain/deadline.ts';
import type { Logger } from '../../domain/logger.ts';

// The driver (7.8) can wait for ever for its own connections: a monitor whose `hello` was written to
// a socket that the server had just closed never settles. See docs/reports/mongodb-driver-drain.md.

/** The times of a watch, in milliseconds. */
const TIMES = {
  /** Time between two looks. */
  everyMs: 2_000,
  /** Deadline of one exchange with the database. */
  answerMs: 3_000,
  /** How long a client may answer nothing, while a new one does, before it connects anew. */
  patienceMs: 8_000,
  /**
   * The same while all its connections are in use: a ping then waits behind slow exchanges. Longer than
   * the deadline of a call.
   */
  busyPatienceMs: 80_000,
  /** How long connecting anew may take to help, before the process should end. */
  lastMs: 40_000,
};

/** Watches whether a client still reaches its database. */
export interface ConnectionWatch {
  /** Says that the database has answered the client. */
  answered(): void;
  close(): void;
}

/**
 * Watches a client. When it answers nothing although a new client does, its connections are closed
 * and made anew. When that does not help either, `onFatal` is called once: only a restart of the
 * process will.
 */
export function watchConnection(deps: {
  readonly client: MongoClient;
  readonly uri: string;
  readonly options: MongoClientOptions;
  readonly logger: Logger;
  readonly onFatal: (error: Error) => void;
  readonly times?: typeof TIMES;
}): ConnectionWatch {
  const { client, uri, options, logger, times = TIMES } = deps;
  const closing = new AbortController();
  let answeredAt = performance.now();
  let renewedAt: number | undefined;
  let inUse = 0;
  client.on('connectionCheckedOut', () => (inUse += 1));
  client.on('connectionCheckedIn', () => (inUse -= 1));
  const { maxPoolSize } = client.options;

  /**
   * Closes all connections of the client and makes new ones; its collections stay as they are. To close them
   * can take longer than the deadline, as cursors and sessions wait for an answer.
   */
  async function renew(): Promise<void> {
    renewedAt = performance.now();
    logger.warn({}, 'the database answers new connections only: all connections are made anew');
    await withDeadline(reconnect(), times.answerMs, silent);
  }

  async function reconnect(): Promise<void> {
    await client.close().catch(() => undefined);
    // The store may have been closed by then.
    if (!closing.signal.aborted) await client.connect();
  }

  async function look(): Promise<void> {
    if (await answers(client, times.answerMs)) return isAnswered();
    const patienceMs = inUse >= maxPoolSize ? times.busyPatienceMs : times.patienceMs;
    if (performance.now() - answeredAt < patienceMs) return;
    const fresh = new MongoClient(uri, { ...options, maxPoolSize: 1 });
    try {
      // An outage is waited for: only what the database answers others counts.
      if (!(await answers(fresh, times.answerMs))) return isAnswered();
      // It may have come back between the two.
      if (await answers(client, times.answerMs)) return isAnswered();
      if (renewedAt === undefined) return await renew();
      if (performance.now() - renewedAt < times.lastMs) return;
      closing.abort();
      deps.onFatal(new Error('The database answers others, but not this process.'));
    } finally {
      void fresh.close(true).catch(() => undefined);
    }
  }

  function isAnswered(): void {
    answeredAt = performance.now();
    renewedAt = undefined;
  }

  async function watch(): Promise<void> {
    while (!closing.signal.aborted) {
      await sleep(times.everyMs, undefined, { signal: closing.signal, ref: false });
      await look().catch((error: unknown) => {
        logger.debug({ err: error }, 'the connections were not looked at');
      });
    }
  }

  // Ends when the sleep is aborted.
  watch().catch(() => undefined);
  return { answered: isAnswered, close: () => closing.abort() };
}

const silent = (): Error => new Error('the database did not answer in time');

async function answers(client: MongoClient, ms: number): Promise<boolean> {
  try {
    await withDeadline(client.db('admin').command({ ping: 1 }), ms, silent);
    return true;
  } catch {
    return false;
  }
}
