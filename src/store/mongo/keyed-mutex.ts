/** Runs what concerns one key one after the other, and different keys side by side. */
export interface Chain {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
}

/** Makes an empty chain. */
export function createKeyedMutex(): Chain {
  const ends = new Map<string, Promise<unknown>>();
  return {
    async run(key, work) {
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
