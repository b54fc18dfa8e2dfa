/** Work that waits to be started, by account in turn. */
export interface StartQueue<Item> {
  /** Adds work. It starts with the next `run`, or in a later iteration of the event loop. */
  add(id: number, accountId: string, item: Item): void;
  /** Removes work that has not been started. */
  remove(id: number): void;
  /** Starts work for the length of one slice, unless a slice is due already. */
  run(): void;
}

/** How a queue starts its work. */
export interface StartQueueOptions<Item> {
  readonly start: (item: Item) => void;
  /** Milliseconds of one iteration of the event loop that go into starting work. */
  readonly sliceMs: number;
  /** Default: `performance.now`. */
  readonly now?: () => number;
  /** Default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
}

/**
 * Makes an empty queue. With all work started at once, one iteration of the event loop would take
 * as long as the answers of hundreds of fast sites, and everybody's crawl passes several
 * iterations. What is started bounds what is answered, so short slices keep all iterations short.
 */
export function createStartQueue<Item>(options: StartQueueOptions<Item>): StartQueue<Item> {
  const { start, sliceMs, now = () => performance.now(), defer = setImmediate } = options;
  const waiting = new Map<number, Item>();
  /** Ids by account; the map's order is the order of turns. */
  const accounts = new Map<string, number[]>();
  let deferred = false;

  function next(): Item | undefined {
    for (const [accountId, ids] of accounts) {
      accounts.delete(accountId);
      const id = ids.shift();
      if (ids.length > 0) accounts.set(accountId, ids);
      if (id === undefined) continue;
      const item = waiting.get(id);
      waiting.delete(id);
      if (item !== undefined) return item;
    }
    return undefined;
  }

  function runSlice(): void {
    deferred = false;
    const until = now() + sliceMs;
    for (let item = next(); item !== undefined; item = next()) {
      start(item);
      if (now() >= until) break;
    }
    if (waiting.size > 0) {
      deferred = true;
      defer(runSlice);
    }
  }

  return {
    add(id, accountId, item) {
      waiting.set(id, item);
      const ids = accounts.get(accountId);
      if (ids === undefined) accounts.set(accountId, [id]);
      else ids.push(id);
    },
    remove: (id) => void waiting.delete(id),
    run() {
      if (!deferred) runSlice();
    },
  };
}
