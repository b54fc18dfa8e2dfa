import { defined } from '../domain/defined.ts';
import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { Admission } from './admission.ts';
import type { Call } from './method.ts';

/** From where an admin call came. */
export type AdminCaller = Pick<Call, 'remote' | 'requestId'> & { readonly protocol: string };

/** An admin call, for the log: its method and its account. Values and tokens are not logged. */
export interface AuditedCall {
  readonly method: string;
  /** Empty for a call that concerns no single account. */
  readonly account: string;
  /** Names of the fields that the call changes. */
  readonly fields?: readonly string[];
}

const NAME = /^[\w.-]{1,64}$/;

/** Performs a call of an admin method; see {@link audited}. The admission has checked its token. */
export async function asAdmin<Result>(
  logger: Logger,
  about: AuditedCall,
  call: Call,
  work: () => Promise<Result>,
): Promise<Result> {
  if (call.isOperator !== true) throw new Error('an admin call came without its admission');
  return audited(logger, about, call, work);
}

/**
 * Performs a call that came with the admin token, and logs one line about it, whether it succeeds
 * or fails.
 */
export async function audited<Result>(
  logger: Logger,
  { method, account, fields = [] }: AuditedCall,
  call: AdminCaller,
  work: () => Promise<Result>,
): Promise<Result> {
  const line = (outcome: string) => ({
    ...whoCalled('admin', call),
    method,
    ...(account === '' ? {} : { account: NAME.test(account) ? account : '(not a name)' }),
    ...(fields.length === 0 ? {} : { fields }),
    outcome,
  });
  try {
    const result = await work();
    logger.info(line('ok'), 'admin call');
    return result;
  } catch (error) {
    logger.warn(line(errorReason(error)), 'admin call failed');
    throw error;
  }
}

/** Wraps an admission so that it logs one line about each refused admin call. */
export function withAudit(admission: Admission, logger: Logger): Admission {
  return {
    async admit(called, token, call) {
      try {
        await admission.admit(called, token, call);
      } catch (error) {
        if (called.access === 'admin') logRefusal(logger, called.method, call, error);
        throw error;
      }
    },
  };
}

/** Logs an admin call that is refused because its token is wrong or missing. */
export function logRefusal(
  logger: Logger,
  method: string,
  call: AdminCaller,
  error: unknown,
): void {
  // Throttled calls are not logged one by one: there may be too many.
  if (error instanceof DomainError && error.kind === 'exhausted') return;
  const line = { ...whoCalled('unauthenticated', call), method, outcome: errorReason(error) };
  logger.warn(line, 'admin call refused');
}

function whoCalled(by: 'admin' | 'unauthenticated', call: AdminCaller) {
  return {
    audit: 'admin',
    by,
    remote: call.remote,
    protocol: call.protocol,
    ...defined({ requestId: call.requestId }),
  };
}

function errorReason(error: unknown): string {
  const { reason } = error as { readonly reason?: unknown };
  return typeof reason === 'string' ? reason : 'internal';
}
