/**
 * Runs operations on the same key one after the other, and those on different keys concurrently.
 */
export interface KeyedMutex {
  runExclusive<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Creates a mutex. */
export function createKeyedMutex(): KeyedMutex {
  const ends = new Map<string, Promise<unknown>>();
  return {
    async runExclusive(key, work) {
      const before = ends.get(key);
      const done = (async () => {
        // Its own caller handles the failure.
        await before?.catch(() => undefined);
        return work();
      })();
      ends.set(key, done);
      try {
        return await done;
      } finally {
        if (ends.get(key) === done) ends.delete(key);
      }
    },
  };
}
