import { createTransientMap, type TransientMap } from '../domain/transient-map.ts';
import type { Claimant } from './fair-pool.ts';

/** The next item of an account. */
export interface Turn<Item> {
  readonly accountId: string;
  readonly item: Item;
}

/** Items that wait. Accounts take turns, and so do the crawlers of each account. */
export interface TurnQueue<Item> {
  readonly size: number;
  /** How many items of an account wait. */
  count(accountId: string): number;
  /** Adds an item behind those of the same crawler. */
  add(claimant: Claimant, item: Item): void;
  /** Returns whether the item was there. */
  remove(claimant: Claimant, item: Item): boolean;
  /** The next item of each account, in the order of turns. */
  turns(): readonly Turn<Item>[];
  /** Removes the next item of an account, which then goes to the end of the turns. */
  endTurn(accountId: string): void;
}

interface AccountLine<Item> {
  count: number;
  /** Items by crawler, in the order of turns. */
  readonly crawlers: TransientMap<string, Item[]>;
}

/** Makes an empty queue. */
export function createTurnQueue<Item>(): TurnQueue<Item> {
  /** In the order of turns. An account without items is not in it. */
  const accounts = createTransientMap<string, AccountLine<Item>>();
  let size = 0;

  function countRemoved(accountId: string, line: AccountLine<Item>): void {
    size -= 1;
    line.count -= 1;
    if (line.count === 0) accounts.delete(accountId);
  }

  return {
    get size() {
      return size;
    },
    count: (accountId) => accounts.get(accountId)?.count ?? 0,
    add({ accountId, crawlerId = '' }, item) {
      const line = accounts.get(accountId) ?? { count: 0, crawlers: createTransientMap() };
      const items = line.crawlers.get(crawlerId) ?? [];
      items.push(item);
      line.crawlers.set(crawlerId, items);
      line.count += 1;
      accounts.set(accountId, line);
      size += 1;
    },
    remove({ accountId, crawlerId = '' }, item) {
      const line = accounts.get(accountId);
      const items = line?.crawlers.get(crawlerId);
      const at = items?.indexOf(item) ?? -1;
      if (line === undefined || items === undefined || at < 0) return false;
      items.splice(at, 1);
      if (items.length === 0) line.crawlers.delete(crawlerId);
      countRemoved(accountId, line);
      return true;
    },
    turns() {
      const turns: Turn<Item>[] = [];
      for (const [accountId, { crawlers }] of accounts.entries()) {
        const [items] = crawlers.values();
        const item = items?.[0];
        if (item !== undefined) turns.push({ accountId, item });
      }
      return turns;
    },
    endTurn(accountId) {
      const line = accounts.get(accountId);
      const [entry] = line?.crawlers.entries() ?? [];
      if (line === undefined || entry === undefined) return;
      const [crawlerId, items] = entry;
      items.shift();
      line.crawlers.delete(crawlerId);
      if (items.length > 0) line.crawlers.set(crawlerId, items);
      accounts.delete(accountId);
      accounts.set(accountId, line);
      countRemoved(accountId, line);
    },
  };
}
