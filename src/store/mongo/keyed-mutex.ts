/** Runs what concerns one key one after the other, and different keys side by side. */
export interface KeyedMutex {
  runExclusive<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Makes a mutex that nothing holds. */
export function createKeyedMutex(): KeyedMutex {
  const ends = new Map<string, Promise<unknown>>();
  return {
    async runExclusive(key, work) {
      const before = ends.get(key);
      const done = (async () => {
        // Its own caller was told of its failure.
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
