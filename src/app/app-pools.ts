import type { Config } from '../config/config.ts';
import { createBrowserTurns } from '../engine/browser/browser-turns.ts';
import { createFairPool, type FairPool } from '../fairness/fair-pool.ts';
import { createRoomPools, type RoomPools } from '../http/room.ts';
import { createSharedResources, type SharedResources } from '../service/crawls/shared-resources.ts';

/** Everything that the accounts of a process share. */
export interface AppPools {
  /** Bytes of pages and of bodies that are crawled, written or delivered. */
  readonly memory: FairPool;
  /** Bytes of calls and their replies. */
  readonly rooms: RoomPools;
  /** Calls that are answered at once. */
  readonly calls: FairPool;
  /** Browser pages that are open at once. */
  readonly browserTurns: FairPool;
  /** Shared by the crawlers that are dispatched. */
  readonly dispatch: SharedResources;
}

/**
 * Calls that are answered at once. More would only wait for the database, where the calls of all
 * accounts are in one queue.
 */
const CALL_SLOTS = { capacity: 16, reserve: 8, maxWaiting: 1_000 };

/**
 * Makes the pools. The memory budget is divided in two: clients decide how long their calls hold
 * memory, so calls have a quarter of their own, and crawls do not wait for them. The reserves are
 * for accounts that use little while others use up the rest.
 */
export function createAppPools(
  config: Pick<Config, 'memoryBudgetBytes' | 'browserPages'>,
): AppPools {
  const quarter = Math.floor(config.memoryBudgetBytes / 4);
  const memory = createFairPool({ name: 'memory', capacity: 3 * quarter, reserve: quarter / 2 });
  const callMemory = createFairPool({
    name: 'memory of calls',
    capacity: quarter,
    reserve: Math.floor(quarter / 4),
    maxWaiting: 1_000,
  });
  return {
    memory,
    rooms: createRoomPools(callMemory, quarter),
    calls: createFairPool({ name: 'calls', ...CALL_SLOTS }),
    browserTurns: createBrowserTurns(config.browserPages),
    dispatch: createSharedResources(memory, config.browserPages),
  };
}

/** The pools by the names that the metrics give them. */
export function measuredPools({ memory, rooms, calls, browserTurns, dispatch }: AppPools) {
  return {
    memory,
    call_memory: rooms.memory,
    strangers: rooms.strangers,
    browser: browserTurns,
    calls,
    crawls: dispatch.crawlSlots,
    browser_crawls: dispatch.pageSlots,
    crawlers: dispatch.runSlots,
    turns: dispatch.turns,
  };
}
