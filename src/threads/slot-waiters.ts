import { createTransientMap, type TransientMap } from '../domain/transient-map.ts';

/** Crawls of a thread that wait for the slot of another one of their line. */
export interface SlotWaiters<Item> {
  add(line: number, id: number, item: Item): void;
  /** Takes the first of a line; undefined when none waits. */
  takeFirst(line: number): Item | undefined;
  /** Takes one; undefined when it does not wait. */
  take(id: number): Item | undefined;
}

/** Makes it without any. */
export function createSlotWaiters<Item>(): SlotWaiters<Item> {
  const lines = createTransientMap<number, TransientMap<number, Item>>();
  const lineOf = createTransientMap<number, number>();

  function take(id: number): Item | undefined {
    const line = lineOf.get(id);
    if (line === undefined) return undefined;
    lineOf.delete(id);
    const items = lines.get(line);
    const item = items?.get(id);
    items?.delete(id);
    if (items?.size === 0) lines.delete(line);
    return item;
  }

  return {
    add(line, id, item) {
      const items = lines.get(line) ?? createTransientMap<number, Item>();
      lines.set(line, items);
      items.set(id, item);
      lineOf.set(id, line);
    },
    takeFirst(line) {
      const id = lines.get(line)?.keys().next().value;
      return id === undefined ? undefined : take(id);
    },
    take,
  };
}
