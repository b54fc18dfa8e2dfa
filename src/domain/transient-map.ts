/**
 * A map, in the order of insertion, whose entries come and go all the time.
 *
 * V8 replaces the table of a `Map` as entries are removed, and links the old one to the new one. Once
 * a table is in the old generation, the garbage collector keeps all that follow, with every value
 * that was in them, until its next full run. That run moves the present table there again. What
 * passes through a `Map` for long costs four times as much that way. This one begins a `Map` of its own after as
 * many removals as it has entries. An iteration may yield entries that were removed since it began,
 * and does not yield later ones.
 */
export interface TransientMap<Key, Value> {
  readonly size: number;
  get(key: Key): Value | undefined;
  has(key: Key): boolean;
  set(key: Key, value: Value): void;
  /** Whether the key was there. */
  delete(key: Key): boolean;
  clear(): void;
  keys(): MapIterator<Key>;
  values(): MapIterator<Value>;
  entries(): MapIterator<[Key, Value]>;
}

/** Minimum number of removals that are left to one `Map`. */
const FEW = 16;

/** Makes an empty map. */
export function createTransientMap<Key, Value>(): TransientMap<Key, Value> {
  let map = new Map<Key, Value>();
  let removals = 0;
  return {
    get size() {
      return map.size;
    },
    get: (key) => map.get(key),
    has: (key) => map.has(key),
    set(key, value) {
      if (removals > map.size + FEW) {
        map = new Map(map);
        removals = 0;
      }
      map.set(key, value);
    },
    delete(key) {
      const wasThere = map.delete(key);
      if (wasThere) removals += 1;
      return wasThere;
    },
    clear() {
      map = new Map();
      removals = 0;
    },
    keys: () => map.keys(),
    values: () => map.values(),
    entries: () => map.entries(),
  };
}

/** A set as {@link TransientMap} is a map. */
export interface TransientSet<Item> {
  add(item: Item): void;
  /** Whether the item was there. */
  delete(item: Item): boolean;
  values(): MapIterator<Item>;
}

/** Makes an empty set. */
export function createTransientSet<Item>(): TransientSet<Item> {
  const items = createTransientMap<Item, undefined>();
  return {
    add: (item) => items.set(item, undefined),
    delete: items.delete,
    values: items.keys,
  };
}
