import { quickly } from './client-options.ts';
import type { Collections } from './collections.ts';

/** Changes of an account's totals. */
export interface AccountChange {
  readonly queued: number;
  readonly queuedBytes?: number;
  readonly storedBytes?: number;
}

/**
 * Gathers the changes of accounts' totals in this process, so that a turn need not write them: all
 * crawlers of an account share one document. A push writes what is gathered for its account
 * together with its own room. What a crash loses is found by `maintain`, which compares the totals.
 */
export interface AccountIncrements {
  add(accountId: string, change: AccountChange): void;
  /** Hands over what is gathered for an account; the caller writes it. */
  take(accountId: string): Required<AccountChange>;
  /** Writes what is gathered. Never rejects, because an increment must not be made twice. */
  flush(): Promise<void>;
}

/** How long changes are gathered. */
const GATHER_MS = 200;

/** Makes an empty one; its timer runs while it holds something. */
export function createAccountIncrements(collections: Collections): AccountIncrements {
  const gathered = new Map<string, Required<AccountChange>>();
  let timer: NodeJS.Timeout | undefined;

  function take(accountId: string): Required<AccountChange> {
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
    if (writes.length === 0) return;
    await collections.accounts
      .bulkWrite(writes, { ordered: false, ...quickly })
      .catch(() => undefined);
  }

  return {
    add(accountId, { queued, queuedBytes = 0, storedBytes = 0 }) {
      if (queued === 0 && queuedBytes === 0 && storedBytes === 0) return;
      const before = take(accountId);
      gathered.set(accountId, {
        queued: before.queued + queued,
        queuedBytes: before.queuedBytes + queuedBytes,
        storedBytes: before.storedBytes + storedBytes,
      });
      timer ??= setTimeout(() => void flush(), GATHER_MS).unref();
    },
    take,
    flush,
  };
}
