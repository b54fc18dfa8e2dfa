import { defined } from '../domain/defined.ts';
import { DomainError } from '../domain/errors.ts';
import type { Logger } from '../domain/logger.ts';
import type { Admission } from './admission.ts';
import type { Call } from './method.ts';

/** One admin call, for the log: what was to be done, to which account. Values and tokens stay out. */
export interface AuditedCall {
  readonly method: string;
  /** Empty for a call about no account in particular. */
  readonly account: string;
  /** Names of the fields that were to change. */
  readonly fields?: readonly string[];
}

const NAME = /^[\w.-]{1,64}$/;

/** Does a call that came with the admin token, and logs one line about it, however it ends. */
export async function audited<Result>(
  logger: Logger,
  { method, account, fields = [] }: AuditedCall,
  call: Call,
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

/** The same admission, which logs one line about each call that asked for the operator's rights in vain. */
export function withAudit(admission: Admission, logger: Logger): Admission {
  return {
    async admit(access, token, call) {
      try {
        await admission.admit(access, token, call);
      } catch (error) {
        // Those that are turned away unread, because too many came, are not worth a line each.
        const isThrottled = error instanceof DomainError && error.kind === 'exhausted';
        if (access === 'admin' && !isThrottled) {
          const line = { ...whoCalled('unauthenticated', call), outcome: errorReason(error) };
          logger.warn(line, 'admin call refused');
        }
        throw error;
      }
    },
  };
}

function whoCalled(by: 'admin' | 'unauthenticated', call: Call) {
  return {
    audit: 'account_service',
    by,
    remote: call.remote,
    protocol: call.protocol,
    ...defined({ requestId: call.requestId }),
  };
}

function errorReason(error: unknown): string {
  return error instanceof DomainError ? error.reason : 'internal';
}
