import { AsyncLocalStorage } from 'node:async_hooks';
import type { Claimant } from '../fairness/fair-pool.ts';

/** One answer of a look-up. */
export interface LookupAnswer {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Finds all addresses of a name on behalf of an account; rejects when there are none. */
export type Lookup = (hostname: string, claimant?: Claimant) => Promise<readonly LookupAnswer[]>;

/**
 * On whose behalf a request is dispatched. A pool makes a connection when it is needed, without
 * telling for which request; what it starts within that request's dispatch finds the claimant here.
 */
export const dispatchingFor = new AsyncLocalStorage<Claimant>();
