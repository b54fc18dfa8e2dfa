import { createLruMap } from '../../domain/lru-map.ts';
import type { AccountChange } from '../count-changes.ts';
import { EPISODE_END } from '../rules.ts';
import { quickly } from './client-options.ts';
import type { AccountDocument, Collections } from './collections.ts';

/**
 * Gathers the changes of accounts' totals in this process, so that neither a turn nor a push need
 * write them: all crawlers of an account share one document. A push that asks the account for room
 * writes what is gathered together with its own. What a crash loses is found by `maintain`, which
 * compares the totals.
 */
export interface AccountIncrements {
  add(accountId: string, change: Partial<AccountChange>): void;
  /** Adds bytes to what the account has stored. */
  addStored(accountId: string, bytes: number): void;
  /** The totals of an account that was just read, with what is gathered. */
  read(document: AccountDocument): AccountChange;
  /** Remembers the queued URLs of an account that was just read. */
  note(accountId: string, queued: number): void;
  /**
   * Counts these URLs if the account, as it was read up to a second ago, is far below the limit.
   * Returns its queued URLs in that case; otherwise undefined, and the account has to be read.
   */
  tryReserve(
    accountId: string,
    more: { readonly n: number; readonly bytes: number },
    limit: number,
  ): number | undefined;
  /** Waits for what is being written. What is read before lacks it. */
  written(): Promise<unknown>;
  /** Hands over what is gathered for an account; the caller writes it. */
  take(accountId: string): AccountChange;
  /**
   * Writes what is gathered, and waits for what is being written. Never rejects, because an
   * increment must not be made twice.
   */
  flush(): Promise<void>;
}

/** How long changes are gathered. */
const GATHER_MS = 500;
/** Within this time a process has usually written what it has gathered. */
export const WRITTEN_MS = 3 * GATHER_MS;
const FRESH_MS = 1_000;
const MAX_ACCOUNTS = 10_000;
/**
 * Room that an account must have for a push that does not ask for it: more than all processes
 * together take between two of their writes. It also has to be out of the episode of a full queue.
 */
const SPARE = 20_000;
const FAR_BELOW = 0.8 * EPISODE_END;

/** Makes an empty one; its timer runs while it holds something. */
export function createAccountIncrements(collections: Collections): AccountIncrements {
  const gathered = new Map<string, AccountChange>();
  const known = createLruMap<string, { queued: number; readonly untilMs: number }>({
    maxEntries: MAX_ACCOUNTS,
  });
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<unknown> = Promise.resolve();

  function take(accountId: string): AccountChange {
    const change = gathered.get(accountId) ?? { queued: 0, queuedBytes: 0, storedBytes: 0 };
    gathered.delete(accountId);
    return change;
  }

  async function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const writes = [...gathered.keys()].map((accountId) => {
      return { updateOne: { filter: { _id: accountId }, update: { $inc: take(accountId) } } };
    });
    if (writes.length > 0) {
      const write = collections.accounts
        .bulkWrite(writes, { ordered: false, ...quickly })
        .catch(() => undefined);
      writing = writing.then(() => write);
    }
    await writing;
  }

  function add(
    accountId: string,
    { queued = 0, queuedBytes = 0, storedBytes = 0 }: Partial<AccountChange>,
  ): void {
    if (queued === 0 && queuedBytes === 0 && storedBytes === 0) return;
    const before = take(accountId);
    gathered.set(accountId, {
      queued: before.queued + queued,
      queuedBytes: before.queuedBytes + queuedBytes,
      storedBytes: before.storedBytes + storedBytes,
    });
    const account = known.get(accountId);
    if (account !== undefined) account.queued += queued;
    timer ??= setTimeout(() => void flush(), GATHER_MS).unref();
  }

  return {
    add,
    addStored: (accountId, storedBytes) => add(accountId, { storedBytes }),
    read({ _id, queued, queuedBytes, storedBytes }) {
      const change = gathered.get(_id);
      return {
        queued: queued + (change?.queued ?? 0),
        queuedBytes: queuedBytes + (change?.queuedBytes ?? 0),
        storedBytes: storedBytes + (change?.storedBytes ?? 0),
      };
    },
    note(accountId, queued) {
      known.set(accountId, { queued, untilMs: performance.now() + FRESH_MS });
    },
    tryReserve(accountId, { n, bytes }, limit) {
      const account = known.get(accountId);
      if (account === undefined || account.untilMs < performance.now()) return undefined;
      const after = account.queued + n;
      if (after > limit * FAR_BELOW || after > limit - SPARE) return undefined;
      add(accountId, { queued: n, queuedBytes: bytes });
      return after;
    },
    written: () => writing,
    take,
    flush,
  };
}
