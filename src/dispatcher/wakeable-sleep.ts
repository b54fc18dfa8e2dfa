/** Lets one loop sleep until it is rung or a time has passed; a ring while it is awake is remembered. */
export interface WakeableSleep {
  ring(): void;
  /** Resolves after `ms`, or as soon as rung. */
  wait(ms: number): Promise<void>;
}

/** Makes a bell for one sleeper. */
export function createWakeableSleep(): WakeableSleep {
  let rung = false;
  let wakeUp: (() => void) | undefined;
  return {
    ring() {
      rung = true;
      wakeUp?.();
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wakeUp = () => {
            clearTimeout(timer);
            resolve();
          };
        });
        wakeUp = undefined;
      }
      rung = false;
    },
  };
}
