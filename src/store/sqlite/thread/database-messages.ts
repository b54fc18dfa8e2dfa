import { defined } from '../../../domain/defined.ts';
import { DomainError, type ErrorKind, type ErrorOptions } from '../../../domain/errors.ts';

/** A call on its way to the worker. */
export interface CallMessage {
  readonly id: number;
  readonly operation: string;
  readonly args: readonly unknown[];
  /** The service time, and how far it is ahead of the clock; milliseconds. */
  readonly nowMs: number;
  readonly aheadMs: number;
}

/** A request to copy the database to a file. */
export interface BackupRequest {
  readonly backup: number;
  readonly path: string;
}

/** What becomes of a backup: a part is copied, it is done, or it failed. */
export type BackupAnswer = { readonly backup: number } & (
  | { readonly copied: number; readonly total: number }
  | { readonly done: true }
  | { readonly error: ErrorMessage }
);

/** An error on its way back. */
export interface ErrorMessage extends ErrorOptions {
  readonly kind: ErrorKind;
  readonly reason: string;
  readonly message: string;
}

/** The answer to one call. */
export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: ErrorMessage };

/** Answers of a batch, sent after its commit. */
export interface BatchMessage {
  readonly answers: readonly Answer[];
  /** Whether the batch wrote. */
  readonly committed: boolean;
  /** Whether the disk has refused one of its writes. */
  readonly refused: boolean;
}

/**
 * How the error of an operation crosses the threads; what is no `DomainError` is a database that
 * failed.
 */
export function toErrorMessage(error: unknown): ErrorMessage {
  if (error instanceof DomainError) {
    const { kind, reason, message, field, retryAfterMs, resource, metadata } = error;
    return { kind, reason, message, ...defined({ field, retryAfterMs, resource, metadata }) };
  }
  return {
    kind: 'unavailable',
    reason: 'database_unavailable',
    message: 'The database cannot take this now.',
    cause: error,
  };
}

/** The error that was sent. */
export function toError(message: ErrorMessage): DomainError {
  const { kind, reason, message: text, ...options } = message;
  return new DomainError(kind, reason, text, options);
}
