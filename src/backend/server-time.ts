import type { Clock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';

/** How far the machine's clock is from the database server's, which all processes go by. */
export interface ServerTime {
  /** To be added to the machine's time, in milliseconds. */
  readonly offsetMs: number;
  close(): void;
}

const SAMPLES = 3;
const MEASURE_EVERY_MS = 30_000;
/** Smaller differences are left alone: the machines' clocks are better than the measurement. */
const LEAST_MS = 50;
/** From here on it is worth a line in the log. */
const LARGE_MS = 1_000;

/** Measures the difference now, and again every half minute. `read` asks the server for its time. */
export async function openServerTime(
  read: () => Promise<Date>,
  logger: Logger,
): Promise<ServerTime> {
  let offsetMs = 0;

  async function measure(): Promise<void> {
    let best = { roundTripMs: Number.POSITIVE_INFINITY, foundMs: 0 };
    for (let n = 0; n < SAMPLES; n++) {
      const askedAt = performance.now();
      const askedMs = Date.now();
      const server = await read();
      const roundTripMs = performance.now() - askedAt;
      const foundMs = server.getTime() - askedMs - roundTripMs / 2;
      if (roundTripMs < best.roundTripMs) best = { roundTripMs, foundMs };
    }
    const { roundTripMs, foundMs } = best;
    const wanted = Math.abs(foundMs) <= LEAST_MS + roundTripMs ? 0 : Math.round(foundMs);
    if (Math.abs(wanted - offsetMs) <= LEAST_MS + roundTripMs) return;
    offsetMs = wanted;
    if (Math.abs(wanted) < LARGE_MS) return;
    logger.warn({ offsetMs: wanted }, "the machine's clock is wrong; the database's time is used");
  }

  await measure();
  const timer = setInterval(() => {
    measure().catch((error: unknown) => logger.debug({ err: error }, 'the time was not measured'));
  }, MEASURE_EVERY_MS);
  return {
    get offsetMs() {
      return offsetMs;
    },
    close: () => clearInterval(timer),
  };
}

/** The time of the server. */
export function serverClock(time: Pick<ServerTime, 'offsetMs'>): Clock {
  return { now: () => new Date(Date.now() + time.offsetMs) };
}
