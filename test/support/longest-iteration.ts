import { PerformanceObserver } from 'node:perf_hooks';

interface Iteration {
  /** Processor time. */
  ms: number;
  /** On the clock of `performance.now()`. */
  readonly end: number;
}

/**
 * Measures the processor time of each iteration of this thread's event loop. Time in which it waits for a processor does not count,
 * and collections of garbage do not: into which iteration one falls is chance.
 */
export function measureIterations() {
  const collections = new PerformanceObserver(() => undefined);
  collections.observe({ entryTypes: ['gc'] });
  let longest = 0;
  let before = process.threadCpuUsage();
  /** The last iteration. Its collections may be announced in the next one only. */
  let last: Iteration = { ms: 0, end: performance.now() };
  let next = setImmediate(measure);

  function measure(): void {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    const current = { ms: (user + system) / 1_000, end: performance.now() };
    for (const { startTime, duration } of collections.takeRecords()) {
      (startTime < last.end ? last : current).ms -= duration;
    }
    longest = Math.max(longest, last.ms);
    last = current;
    next = setImmediate(measure);
  }

  return {
    /** That of the longest since the last call; the last iteration counts for the next call. */
    takeLongestMs(): number {
      const taken = longest;
      longest = 0;
      return taken;
    },
    [Symbol.dispose](): void {
      clearImmediate(next);
      collections.disconnect();
    },
  };
}

/** Processor time, in milliseconds, of 10 MiB of text that this thread makes JSON in one piece: the least of three. */
export function msOfOnePiece(): number {
  const text = 'a\u0001'.repeat(5 * 1_024 * 1_024);
  return Math.min(
    ...Array.from({ length: 3 }, () => {
      const before = process.threadCpuUsage();
      JSON.stringify(text);
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1_000;
    }),
  );
}
