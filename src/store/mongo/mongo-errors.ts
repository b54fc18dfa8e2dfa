import {
  MongoError,
  MongoNetworkError,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb';
import { DomainError, databaseUnavailable } from '../../domain/errors.ts';

const DUPLICATE_KEY = 11_000;
const WRITE_CONFLICT = 112;
const COMMAND_NOT_FOUND = 59;
// The primary stepped down, is shutting down, was interrupted, as by another process, or is too slow; the write concern was
// not met in time; there is no writable member. Its disk is full, writes are blocked, or too many requests arrive.
const TRANSIENT_CODES = new Set([
  6, 7, 50, 64, 89, 91, 112, 133, 189, 262, 317, 358, 371, 462, 9_001, 10_058, 10_107, 11_600,
  11_601, 11_602, 13_388, 13_435, 13_436, 14_031,
]);

// Classes that the driver does not export in all its versions.
const TRANSIENT_NAMES = new Set([
  'MongoWaitQueueTimeoutError',
  'MongoClientClosedError',
  // The client was replaced while the call waited for a connection.
  'MongoPoolClosedError',
  // Its session ended when all connections were made anew.
  'MongoExpiredSessionError',
]);

/** Whether a unique index refused the write. */
export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/** Whether an insert was made; false if a unique index refused it. */
export async function isInserted(insert: Promise<unknown>): Promise<boolean> {
  try {
    await insert;
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

/** Whether the server aborted the write because of a concurrent one; nothing of it was done. */
export function isConflict(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === WRITE_CONFLICT;
}

/** Whether the server does not have the command. */
export function isUnknownCommand(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === COMMAND_NOT_FOUND;
}

// Writing to a socket that the server is closing fails with Node's own error, which the driver
// passes on as it is.
const SOCKET_CODES = new Set([
  'EPIPE',
  'ECONNRESET',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

function isOfSocket(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && SOCKET_CODES.has(String(error.code));
}

/**
 * Converts an error of the driver: a database that cannot answer now is `unavailable`, everything
 * else is `internal`.
 */
export function toDomainError(error: unknown): unknown {
  if (isOfSocket(error)) return databaseUnavailable(undefined, error);
  if (error instanceof DomainError || !(error instanceof MongoError)) return error;
  if (isTransient(error)) return databaseUnavailable(undefined, error);
  const message = 'The database refused an operation.';
  return new DomainError('internal', 'database_error', message, { cause: error });
}

function isTransient(error: MongoError): boolean {
  // A bulk write wraps the error of its command.
  const wrapped: unknown = error instanceof MongoServerError ? error.errorResponse : undefined;
  if (wrapped instanceof MongoError) return isTransient(wrapped);
  return (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof MongoNotConnectedError ||
    error instanceof MongoTopologyClosedError ||
    error.hasErrorLabel('RetryableWriteError') ||
    error.hasErrorLabel('TransientTransactionError') ||
    TRANSIENT_NAMES.has(error.name) ||
    TRANSIENT_CODES.has(Number(error.code))
  );
}
