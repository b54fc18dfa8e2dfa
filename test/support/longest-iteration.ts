/** Measures the processor time of each iteration of this thread's event loop; time in which it waits for a processor does not count. */
export function measureIterations() {
  let longest = 0;
  let before = process.threadCpuUsage();
  let next = setImmediate(measure);

  function measure(): void {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    longest = Math.max(longest, (user + system) / 1_000);
    next = setImmediate(measure);
  }

  return {
    /** That of the longest since the last call. */
    takeLongestMs(): number {
      const taken = longest;
      longest = 0;
      return taken;
    },
    [Symbol.dispose]: (): void => clearImmediate(next),
  };
}
