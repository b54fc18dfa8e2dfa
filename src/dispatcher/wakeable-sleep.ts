/** Lets one loop sleep until it is woken or a time has passed. */
export interface WakeableSleep {
  /** Ends the sleep; while nobody sleeps, the next sleep ends at once. */
  wake(): void;
  /** Resolves after `ms`, or when woken. */
  sleep(ms: number): Promise<void>;
}

/** Makes the sleep of one loop. */
export function createWakeableSleep(): WakeableSleep {
  let woken = false;
  let wakeUp: (() => void) | undefined;
  return {
    wake() {
      woken = true;
      wakeUp?.();
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
