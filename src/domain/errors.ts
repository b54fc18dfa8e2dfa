import { lastName } from './field-name.ts';

/** The kinds of failure; every protocol maps them to its own codes. */
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

/** What a call named that is not there, or is there already. */
export interface ErrorResource {
  readonly type: 'crawler' | 'account' | 'result' | 'delivery' | 'job' | 'batch' | 'proxy_pool';
  /** The name or `rid` that the call gave. */
  readonly name: string;
}

/** Optional parts of a {@link DomainError}. */
export interface ErrorOptions {
  /** The request field that is wrong. */
  readonly field?: string;
  /** How long to wait before a retry, in milliseconds. */
  readonly retryAfterMs?: number;
  readonly resource?: ErrorResource;
  /** Further facts for the client, for example the limit that was reached. */
  readonly metadata?: Readonly<Record<string, string | number>>;
  /** For the log; never sent. */
  readonly cause?: unknown;
}

/**
 * The only error that the layers above the stores throw. `message` is written for the client,
 * `reason` is a stable code for programs, `cause` is for the log.
 */
export class DomainError extends Error {
  override readonly name = 'DomainError';
  readonly kind: ErrorKind;
  readonly reason: string;
  readonly field: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly resource: ErrorResource | undefined;
  readonly metadata: Readonly<Record<string, string | number>> | undefined;

  constructor(kind: ErrorKind, reason: string, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.reason = reason;
    this.field = options.field;
    this.retryAfterMs = options.retryAfterMs;
    this.resource = options.resource;
    this.metadata = options.metadata;
  }
}

/**
 * A request field that cannot be accepted. `reason` is `invalid_` and the last name of its path unless
 * given, so that it is the same for every index.
 */
export function invalidField(field: string, message: string, reason?: string): DomainError {
  return new DomainError('invalid', reason ?? `invalid_${lastName(field)}`, message, { field });
}

/** A required request field that is absent or empty. */
export function missingField(field: string): DomainError {
  return invalidField(field, `The ${field} parameter is missing.`, `missing_${field}`);
}

/** A `page_token` that no listing has returned. */
export function invalidPageToken(): DomainError {
  const message = 'page_token must be the next_page_token of the page before.';
  return invalidField('page_token', message);
}

/**
 * A token that belongs to no account, or whose account is gone. `message` may say more, `field`
 * names the request's field where there is one.
 */
export function invalidToken(
  message = 'The access token is not valid.',
  options: Pick<ErrorOptions, 'field'> = {},
): DomainError {
  return new DomainError('unauthenticated', 'invalid_token', message, options);
}

/** A name that no crawler has; `field` is the field of the request that named it. */
export function crawlerNotFound(
  name: string,
  field: 'name' | 'crawler' | 'crawlers' | 'history_of',
): DomainError {
  const message = `There is no crawler "${name}".`;
  const resource = { type: 'crawler', name } as const;
  return new DomainError('not_found', 'crawler_not_found', message, { field, resource });
}

/** A name that no batch of the crawler has. */
export function batchNotFound(name: string): DomainError {
  const message = `The crawler has no batch "${name}".`;
  const options = { field: 'batch', resource: { type: 'batch', name } } as const;
  return new DomainError('not_found', 'batch_not_found', message, options);
}

/** A `rid`, or a URL, that nothing of the caller's has. The text is the reference API's. */
export function ridNotFound(
  type: ErrorResource['type'],
  name: string,
  field: 'rid' | 'url' = 'rid',
): DomainError {
  const options = { field, resource: { type, name } };
  return new DomainError('not_found', 'rid_not_found', 'RID not found', options);
}

/** A crawler in storage mode, of which something was asked that only deliveries have. */
export function noDeliveries(crawlerName: string): DomainError {
  const message = `The crawler ${crawlerName} delivers nothing: its results are stored.`;
  return new DomainError('failed_precondition', 'no_webhook', message);
}

/** A name that no account has. */
export function accountNotFound(name: string): DomainError {
  const message = `There is no account "${name}".`;
  const options = { field: 'name', resource: { type: 'account', name } } as const;
  return new DomainError('not_found', 'account_not_found', message, options);
}

/** A name that another account has. */
export function accountExists(name: string): DomainError {
  const message = `There is an account "${name}".`;
  const options = { field: 'name', resource: { type: 'account', name } } as const;
  return new DomainError('conflict', 'account_exists', message, options);
}

/** A preset token that another account has. */
export function tokenTaken(): DomainError {
  return new DomainError('conflict', 'token_taken', 'The token belongs to another account.');
}

/** An account that cannot be removed yet. */
export function accountHasCrawlers(): DomainError {
  const message = 'The account has crawlers; delete them first.';
  return new DomainError('failed_precondition', 'account_has_crawlers', message);
}

/** A database, or the scheduler on it, that cannot answer now. The call may be retried. */
export function databaseUnavailable(
  message = 'The database cannot be reached; try again.',
  cause?: unknown,
): DomainError {
  const options = { retryAfterMs: 1_000, cause };
  return new DomainError('unavailable', 'database_unavailable', message, options);
}

/** Whether the error is one of a database that is unavailable, or too slow, for the moment. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof DomainError && error.kind === 'unavailable';
}

/** A MongoDB server that is no member of a replica set has no transactions. */
export function databaseAlone(): DomainError {
  return new DomainError(
    'failed_precondition',
    'database_alone',
    'MONGODB_URI must name a replica set or a sharded cluster; this server is neither. One member is enough: start it as `mongod --replSet rs0`, and run `mongosh --eval "rs.initiate()"` once.',
  );
}

/** A database that a newer program has written; the versions are those of the schema. */
export function databaseTooNew(version: number, known: number): DomainError {
  return new DomainError(
    'failed_precondition',
    'database_too_new',
    `The database has version ${version}; this program knows ${known}. Start the newer program.`,
  );
}

/** A database that is to be upgraded while `processes` of the program before work on it. */
export function databaseInUse(processes: string): DomainError {
  return new DomainError(
    'failed_precondition',
    'database_in_use',
    `The database has to be upgraded, and processes of the version before work on it: ${processes}. Stop them all, then start this program. Nothing was changed.`,
  );
}

/** A database into which the embedded one was copied in part. */
export function copyUnfinished(): DomainError {
  return new DomainError(
    'failed_precondition',
    'copy_unfinished',
    'MONGODB_URI names a database with an unfinished copy: continue it by the same `queued-crawler migrate`, or remove the database.',
  );
}
