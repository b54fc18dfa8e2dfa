import { createFairPool, type FairPool } from '../../fairness/fair-pool.ts';

/**
 * The turns at a browser that shows `pages` at once, and a quarter as many beside for accounts that
 * have none.
 */
export function createBrowserTurns(pages: number): FairPool {
  return createFairPool({
    name: 'browser pages',
    capacity: pages,
    reserve: Math.ceil(pages / 4),
  });
}
