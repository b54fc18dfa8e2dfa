import type { TokenOwner } from '../domain/account.ts';
import type { Call } from './method.ts';

/**
 * The owner of the token that the admission has checked; see `withAdmission`. Of a stream it is the
 * token of the message that was read last.
 */
export function callerOf({ caller, countsAs }: Call): TokenOwner {
  if (caller === undefined) throw new Error('a call came without its admission');
  return countsAs === undefined ? caller.owner : { ...caller.owner, tokenType: countsAs };
}
