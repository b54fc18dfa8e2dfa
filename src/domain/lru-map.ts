import { createTransientMap } from './transient-map.ts';

/** A map of bounded size. When it is full, a new entry replaces the least recently used one. */
export interface LruMap<Key, Value> {
  readonly size: number;
  /** The value of a key, which then counts as just used. */
  get(key: Key): Value | undefined;
  /** Whether the key is there; does not count as a use. */
  has(key: Key): boolean;
  /** Adds or replaces an entry, which then counts as just used. */
  set(key: Key, value: Value): void;
  /** Whether the key was there. */
  delete(key: Key): boolean;
  clear(): void;
  /** From the least to the most recently used. */
  entries(): Iterable<[Key, Value]>;
}

/**
 * Makes an empty map. Entries for which `isPinned` is true are not evicted, so with many of them
 * the map grows beyond `maxEntries`. `onEvict` is called with each evicted value, but not for
 * `delete` and `clear`.
 */
export function createLruMap<Key, Value>(options: {
  readonly maxEntries: number;
  /** Default: none. */
  readonly isPinned?: (value: Value) => boolean;
  readonly onEvict?: (value: Value) => void;
}): LruMap<Key, Value> {
  const { maxEntries, isPinned, onEvict } = options;
  // A Map iterates in the order of insertion, so entries that are used are inserted again.
  const entries = createTransientMap<Key, Value>();

  function evict(newest: Key): void {
    for (const [key, value] of entries.entries()) {
      if (entries.size <= maxEntries || key === newest) return;
      if (isPinned?.(value) === true) continue;
      entries.delete(key);
      onEvict?.(value);
    }
  }

  return {
    get size() {
      return entries.size;
    },
    get(key) {
      const value = entries.get(key);
      if (value === undefined) return undefined;
      entries.delete(key);
      entries.set(key, value);
      return value;
    },
    has: (key) => entries.has(key),
    set(key, value) {
      entries.delete(key);
      entries.set(key, value);
      if (entries.size > maxEntries) evict(key);
    },
    delete: (key) => entries.delete(key),
    clear: () => entries.clear(),
    entries: () => entries.entries(),
  };
}
