import type { AuditFilter, AuditRecord } from '../domain/audit.ts';
import type { Listing, ListingPart } from './listing-store.ts';

/** Records of what was changed. */
export interface AuditStore {
  /**
   * Adds records; one that is there already stays as it is. Of an account with more than
   * `MAX_AUDIT_RECORDS` the oldest are removed.
   */
  add(records: readonly AuditRecord[]): Promise<void>;
  /** The records of an account, newest first. */
  list(accountId: string, filter: AuditFilter, part: ListingPart): Promise<Listing<AuditRecord>>;
}
