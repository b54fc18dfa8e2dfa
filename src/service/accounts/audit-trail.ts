import type { TokenOwner } from '../../domain/account.ts';
import type { AuditFilter, AuditRecord } from '../../domain/audit.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { createRid } from '../../domain/rid.ts';
import type { Listing, ListingPart, Store } from '../../store/store.ts';

/** A change that was made. */
export interface Change extends Omit<AuditRecord, 'auditId' | 'accountId' | 'at'> {
  /** Whose it is: known by its id, or by its name. */
  readonly account: { readonly accountId: string } | { readonly name: string };
}

/** Keeps who changed what. */
export interface AuditTrail {
  /** Notes a change; it is written soon after, so that no call waits for that. */
  note(change: Change): void;
  /** Reads what was noted in this process, too. */
  list(owner: TokenOwner, filter: AuditFilter, part: ListingPart): Promise<Listing<AuditRecord>>;
  /** Writes what was not written; logs what could not be. */
  close(): Promise<void>;
}

/** Delay between a change and its record, which is one write for all changes. */
const WRITE_MS = 200;
/** Delay before a failed write is retried. */
const RETRY_MS = 2_000;
/** Changes that wait to be written, as while the database is unavailable. */
const MAX_WAITING = 10_000;

/** Makes the trail. */
export function createAuditTrail(deps: {
  readonly store: Pick<Store, 'audit' | 'accounts'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}): AuditTrail {
  const { store, clock, logger } = deps;
  let waiting: (Change & Pick<AuditRecord, 'auditId' | 'at'>)[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let isClosed = false;
  /** Changes that were not noted since the last write that succeeded. */
  let lost = 0;

  async function recordsOf(changes: typeof waiting): Promise<AuditRecord[]> {
    const ids = new Map<string, string | undefined>();
    for (const { account } of changes) {
      if ('name' in account && !ids.has(account.name)) {
        ids.set(account.name, (await store.accounts.findByName(account.name))?.accountId);
      }
    }
    return changes.flatMap(({ account, ...change }) => {
      const accountId = 'name' in account ? ids.get(account.name) : account.accountId;
      // The account is removed, and nobody can read what was done to it.
      return accountId === undefined ? [] : [{ ...change, accountId }];
    });
  }

  function logLost(): void {
    if (lost > 0) logger.error({ records: lost }, 'too many audit records waited, some are lost');
    lost = 0;
  }

  async function write(): Promise<void> {
    const changes = waiting;
    if (changes.length === 0) return;
    waiting = [];
    try {
      await store.audit.add(await recordsOf(changes));
      logLost();
    } catch (error) {
      waiting = [...changes, ...waiting];
      if (!isClosed) writeAfter(RETRY_MS);
      throw error;
    }
  }

  /** One write at a time. */
  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.catch(() => undefined).then(write);
    return writing;
  }

  function writeAfter(ms: number): void {
    timer ??= setTimeout(() => {
      flush().catch((error: unknown) => {
        logger.debug({ err: error }, 'audit records were not written, retrying');
      });
    }, ms).unref();
  }

  return {
    note(change) {
      if (waiting.length >= MAX_WAITING) {
        lost += 1;
        return;
      }
      const at = wallNow(clock);
      waiting.push({ ...change, auditId: createRid(at), at });
      writeAfter(WRITE_MS);
    },
    async list({ account }, filter, part) {
      await flush();
      return store.audit.list(account.accountId, filter, part);
    },
    async close() {
      isClosed = true;
      await flush().catch((error: unknown) => {
        logger.error({ err: error, records: waiting.length + lost }, 'audit records are lost');
      });
    },
  };
}
