/** Timers of one exchange. */
export interface TimeLimits {
  /** Starts a limit. `onExceeded` is called once unless the limit is cancelled first. */
  start(ms: number, onExceeded: () => void): TimeLimit;
  cancelAll(): void;
}

/** One running limit. */
export interface TimeLimit {
  cancel(): void;
}

/**
 * Makes a set without limits. A limit that runs out lets the event loop read the sockets once more
 * before it takes effect. A response that had arrived in time counts, even when the process was too
 * busy to read it.
 */
export function createTimeLimits(): TimeLimits {
  const running = new Set<TimeLimit>();
  return {
    start(ms, onExceeded) {
      const timer = setTimeout(() => {
        setImmediate(() => {
          if (running.delete(limit)) onExceeded();
        });
      }, ms);
      const limit: TimeLimit = {
        cancel() {
          clearTimeout(timer);
          running.delete(limit);
        },
      };
      running.add(limit);
      return limit;
    },
    cancelAll() {
      for (const limit of running) limit.cancel();
    },
  };
}
