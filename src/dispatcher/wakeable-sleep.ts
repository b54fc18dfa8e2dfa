/**
 * Lets one loop sleep until it is woken or a time has passed. What wakes it in one iteration of the event
 * loop wakes it once.
 */
export interface WakeableSleep {
  /** Ends the sleep, in this iteration of the event loop; while nobody sleeps, the next sleep ends at once. */
  wake(): void;
  /** Resolves after `ms`, or when woken. */
  sleep(ms: number): Promise<void>;
}

/** Makes the sleep of one loop. */
export function createWakeableSleep(): WakeableSleep {
  let woken = false;
  let isWaking = false;
  let wakeUp: (() => void) | undefined;
  return {
    wake() {
      woken = true;
      if (wakeUp === undefined || isWaking) return;
      isWaking = true;
      setImmediate(() => {
        isWaking = false;
        wakeUp?.();
      });
    },
    async sleep(ms) {
      if (!woken) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wakeUp = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wakeUp = undefined;
      }
      woken = false;
    },
  };
}
