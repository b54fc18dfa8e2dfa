/** The source of the service time; tests have one of their own. */
export interface Clock {
  /**
   * The service time, which waits, leases and whatever is due go by. It only goes forward, at the
   * pace of monotonic time, whatever happens to the clocks of machines.
   */
  now(): Date;
}

/** How the service time and the clock that people see differ. */
export interface WallClock {
  /** How far the service time is ahead, in milliseconds; changes when the clock is set. */
  readonly aheadMs: number;
}

/** The service time, and the clock for moments that are kept, shown or told to others. */
export interface ServiceClock extends Clock, WallClock {}

/** What the clock shows at a moment of the service time, if it is not set until then. */
export function toWall({ aheadMs }: WallClock, moment: Date): Date {
  return new Date(moment.getTime() - aheadMs);
}

/** The moment of the service time at which the clock shows this, if it is not set until then. */
export function fromWall({ aheadMs }: WallClock, shown: Date): Date {
  return new Date(shown.getTime() + aheadMs);
}

/** What the clock shows now. */
export function wallNow(clock: ServiceClock): Date {
  return toWall(clock, clock.now());
}

/** A clock that differs by more than this from monotonic time was set. */
const SET_MS = 20;
/** Both clocks are read again if more time than this has passed between them: the thread was stopped. */
const AT_ONCE_MS = 1;
const MAX_READINGS = 100;

/** What the machine's clock and the monotonic one show at the same time. */
function readClocks(): { readonly wallMs: number; readonly monotonicMs: number } {
  for (let readings = 1; ; readings += 1) {
    const startedMs = performance.now();
    const wallMs = Date.now();
    const monotonicMs = performance.now();
    const isAtOnce = monotonicMs - startedMs < AT_ONCE_MS;
    if (isAtOnce || readings === MAX_READINGS) return { wallMs, monotonicMs };
  }
}

/**
 * A service time that starts at `startMs`, or at what the machine's clock shows if that is later.
 * Calls `onSet` when the machine's clock was set.
 */
export function createMachineClock(
  startMs = 0,
  onSet: (byMs: number) => void = () => undefined,
): ServiceClock {
  const { wallMs, monotonicMs } = readClocks();
  const offsetMs = Math.max(startMs, wallMs) - monotonicMs;
  // The start before may have ended milliseconds later by a clock that is slewed.
  let aheadMs = startMs - wallMs > SET_MS ? startMs - wallMs : 0;
  const at = (monotonic: number): number => Math.round(offsetMs + monotonic);
  return {
    now: () => new Date(at(performance.now())),
    get aheadMs() {
      const current = readClocks();
      const foundMs = at(current.monotonicMs) - current.wallMs;
      if (Math.abs(foundMs - aheadMs) > SET_MS) {
        onSet(aheadMs - foundMs);
        aheadMs = foundMs;
      }
      return aheadMs;
    },
  };
}

/** The clock of this thread alone. */
export const systemClock: ServiceClock = createMachineClock();
