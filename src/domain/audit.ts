import type { TokenType } from './account.ts';
import { DAY_MS } from './durations.ts';

/** Who changed something: a token of the account, or the operator. */
export type AuditActor = TokenType | 'operator';

/** A call that changed something of an account. It never holds a token. */
export interface AuditRecord {
  /** 24 hexadecimal digits. */
  readonly auditId: string;
  readonly accountId: string;
  readonly at: Date;
  readonly by: AuditActor;
  /** The address of the client; empty when unknown. */
  readonly remote: string;
  /** Of the call; empty when unknown. */
  readonly requestId: string;
  /** Such as `UpdateCrawler`. */
  readonly method: string;
  /** The crawler; empty for a change of the account. */
  readonly crawler: string;
  /** The fields of the call as JSON. Of URLs only their origins, as the rest may be secret. */
  readonly changes: string;
}

/** Which records are listed; all conditions together. */
export interface AuditFilter {
  readonly by?: AuditActor;
  readonly method?: string;
  readonly crawler?: string;
  /** From this moment on. */
  readonly from?: Date;
  /** Before this moment. */
  readonly to?: Date;
}

/** How long records are kept. */
export const AUDIT_KEPT_MS = 90 * DAY_MS;

/** Records of one account that are kept: the latest. */
export const MAX_AUDIT_RECORDS = 10_000;
