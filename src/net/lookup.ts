import { AsyncLocalStorage } from 'node:async_hooks';
import type { Claimant } from '../fairness/fair-pool.ts';

/** One answer of a look-up. */
export interface LookupAnswer {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * Looks up all addresses of a name on behalf of an account; rejects when the name has no address.
 */
export type Lookup = (hostname: string, claimant?: Claimant) => Promise<readonly LookupAnswer[]>;

/**
 * On whose behalf a request is dispatched. A pool makes connections when they are needed and does
 * not say for which request; the look-up for such a connection reads the claimant here.
 */
export const dispatchingFor = new AsyncLocalStorage<Claimant>();
