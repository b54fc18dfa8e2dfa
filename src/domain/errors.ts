/** What went wrong, in the terms every edge maps to its own codes. */
export type ErrorKind =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'failed_precondition'
  | 'exhausted'
  | 'unavailable'
  | 'internal';

/** What a {@link DomainError} carries beside its message. */
export interface ErrorOptions {
  /** The request field at fault. */
  readonly field?: string;
  /** When to try again, in milliseconds. */
  readonly retryAfterMs?: number;
  /** Further facts for the client, for example the limit that was reached. */
  readonly metadata?: Readonly<Record<string, string | number>>;
  /** For the log; never sent. */
  readonly cause?: unknown;
}

/**
 * The one error the layers above the stores throw. `message` is written for the client, `reason` is stable and for
 * programs, `cause` is for the log.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly kind: ErrorKind;
  readonly reason: string;
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly metadata: Readonly<Record<string, string | number>> | undefined;

  constructor(kind: ErrorKind, reason: string, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.reason = reason;
    this.field = options.field;
    this.retryAfterMs = options.retryAfterMs;
    this.metadata = options.metadata;
  }
}

/** A request field that cannot be accepted; `reason` is `invalid_<field>` unless given. */
export function invalidField(field: string, message: string, reason?: string): DomainError {
  return new DomainError('invalid', reason ?? `invalid_${field}`, message, { field });
}
