import { createFairPool, type FairPool } from '../../fairness/fair-pool.ts';

/**
 * The turns at a browser with `pages` open at once. A quarter as many more are reserved for
 * accounts that have none open.
 */
export function createBrowserTurns(pages: number): FairPool {
  return createFairPool({
    name: 'browser pages',
    capacity: pages,
    reserve: Math.ceil(pages / 4),
  });
}
