import { createTransientMap } from '../domain/transient-map.ts';
import { createStartWindow } from './start-window.ts';

/** Work that waits to be started, by account in turn. */
export interface StartQueue<Item> {
  /** Adds work. It starts with the next `run`, or in a later iteration of the event loop. */
  add(id: number, accountId: string, item: Item): void;
  /** Removes work that has not been started. Returns false if no such work has this number. */
  remove(id: number): boolean;
  /** Starts work for the length of one slice, unless a slice is due already. */
  run(): void;
  /** See {@link createStartWindow}. */
  isShared(): boolean;
}

/** How a queue starts its work. */
export interface StartQueueOptions<Item> {
  /** Resolves when the work has ended. */
  readonly start: (item: Item) => Promise<void>;
  /** Milliseconds of one iteration of the event loop that go into starting work. */
  readonly sliceMs: number;
  /** Default: `performance.now`. */
  readonly now?: () => number;
  /** Runs something in the next iteration of the event loop; default: `setImmediate`. */
  readonly defer?: (run: () => void) => void;
  /** Runs something a little later; default: after 2 ms. */
  readonly pause?: (run: () => void) => void;
}

const SLICE_PAUSE_MS = 2;

/**
 * Makes an empty queue. With all work started at once, one iteration of the event loop would take
 * as long as the answers of hundreds of fast sites, and everybody's crawl passes several
 * iterations. So it starts work in short slices, and no more of one account than the window of
 * {@link createStartWindow} has room for.
 */
export function createStartQueue<Item>(options: StartQueueOptions<Item>): StartQueue<Item> {
  const { start, sliceMs, now = () => performance.now(), defer = setImmediate } = options;
  const { pause = (run) => void setTimeout(run, SLICE_PAUSE_MS) } = options;
  const window = createStartWindow(now);
  const waiting = createTransientMap<number, Item>();
  /** Ids by account; the map's order is the order of turns. */
  const accounts = createTransientMap<string, number[]>();
  /** Started work that has not ended, by account. */
  const inFlight = createTransientMap<string, number>();
  let deferred = false;
  let isMeasuring = false;

  function takeItem(ids: number[]): Item | undefined {
    while (ids.length > 0) {
      const id = ids.shift() ?? 0;
      const item = waiting.get(id);
      if (waiting.delete(id)) return item;
    }
    return undefined;
  }

  /** Starts the next work of the next account that may start some. Returns whether there was one. */
  function startNext(): boolean {
    for (const [accountId, ids] of accounts.entries()) {
      if (!window.isOpen(inFlight.get(accountId) ?? 0)) continue;
      accounts.delete(accountId);
      const item = takeItem(ids);
      if (ids.length > 0) accounts.set(accountId, ids);
      if (item === undefined) continue;
      inFlight.set(accountId, (inFlight.get(accountId) ?? 0) + 1);
      void start(item).finally(() => ended(accountId));
      return true;
    }
    return false;
  }

  function ended(accountId: string): void {
    const before = inFlight.get(accountId) ?? 0;
    // A crawl of another account that takes long starts nothing, and passes iterations all the same.
    if (inFlight.size > 1) window.sawSeveral();
    if (before > 1) inFlight.set(accountId, before - 1);
    else inFlight.delete(accountId);
    if (isMeasuring) return;
    isMeasuring = true;
    const from = now();
    defer(() => {
      isMeasuring = false;
      window.passed(now() - from, before);
    });
  }

  function runSlice(): void {
    deferred = false;
    const until = now() + sliceMs;
    let isBlocked = false;
    do {
      isBlocked = !startNext();
    } while (!isBlocked && now() < until);
    if (waiting.size === 0) return;
    deferred = true;
    if (isBlocked) pause(runSlice);
    else defer(runSlice);
  }

  return {
    add(id, accountId, item) {
      window.seen(accountId);
      waiting.set(id, item);
      const ids = accounts.get(accountId);
      if (ids === undefined) accounts.set(accountId, [id]);
      else ids.push(id);
    },
    remove: (id) => waiting.delete(id),
    run() {
      if (!deferred) runSlice();
    },
    isShared: window.isShared,
  };
}
