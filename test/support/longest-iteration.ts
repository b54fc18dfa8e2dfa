import { PerformanceObserver } from 'node:perf_hooks';

/**
 * Measures the processor time of each iteration of this thread's event loop. Time in which it waits for a processor does not count,
 * and collections of garbage do not: into which iteration one falls is chance.
 */
export function measureIterations() {
  const collections = new PerformanceObserver(() => undefined);
  collections.observe({ entryTypes: ['gc'] });
  let longest = 0;
  let before = process.threadCpuUsage();
  let next = setImmediate(measure);

  function measure(): void {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    const collectedMs = collections.takeRecords().reduce((sum, { duration }) => sum + duration, 0);
    longest = Math.max(longest, (user + system) / 1_000 - collectedMs);
    next = setImmediate(measure);
  }

  return {
    /** That of the longest since the last call. */
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
