import type { SharedByCrawlers } from '../../dispatcher/dispatcher-deps.ts';
import { createFairPool, type FairPool } from '../../fairness/fair-pool.ts';

/** What all tenants of a process share; each is handed out by account in turn, then by crawler. */
export type SharedResources = SharedByCrawlers;

// Crawls wait for sites most of their time, and hold 64 KiB of the memory budget each.
export const MAX_CRAWLS = 2_000;
// Each polls for work twice a second.
const MAX_RUNS = 500;
const MAX_WAITING_RUNS = 2_000;
// More at once do not make a database faster.
const MAX_TURNS = 64;

/** Makes them; `memory` is the process's budget, `pages` the pages of its browser. */
export function createSharedResources(memory: FairPool, pages: number): SharedResources {
  return {
    memory,
    pageSlots: createFairPool({
      name: 'browser crawls',
      capacity: pages,
      reserve: Math.ceil(pages / 4),
    }),
    crawlSlots: createFairPool({ name: 'crawls', capacity: MAX_CRAWLS, reserve: MAX_CRAWLS / 5 }),
    runSlots: createFairPool({
      name: 'dispatch',
      capacity: MAX_RUNS,
      reserve: MAX_RUNS / 5,
      maxWaiting: MAX_WAITING_RUNS,
    }),
    turns: createFairPool({ name: 'database turns', capacity: MAX_TURNS, reserve: MAX_TURNS / 4 }),
  };
}
