import type { ServiceClock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { type AgreedTime, agreeOn, MAX_DIFFERENCE_MS, type TimeServer } from './agreed-time.ts';

/** The service time that all processes on the database share, and the clock of the server. */
export interface ServiceTime extends ServiceClock {
  /** Compares the clocks; also done every half minute. */
  check(): Promise<void>;
  close(): void;
}

/** Answers of the server's clock that are compared, and how many at most while none was quick. */
const SAMPLES = { least: 3, most: 12, quickMs: 100 } as const;
/** By how much two monotonic clocks run apart at most, as a part of the time that passes. */
const DRIFT = 0.0002;
const CHECK_EVERY_MS = 30_000;
/** Interval at which one of the processes confirms the agreed time. */
const CONFIRM_EVERY_MS = 10_000;
/** Attempts at a write that others were quicker with. */
const MAX_TRIES = 10;

/** The server's clock by monotonic time. */
interface Reading {
  readonly atMs: number;
  readonly serverMs: number;
  readonly roundTripMs: number;
}

/** Opens the service time. Between two checks it advances by the monotonic time of this process. */
export async function openServiceTime(
  server: TimeServer,
  processId: string,
  logger: Logger,
): Promise<ServiceTime> {
  let reading = await read(server);
  let aheadMs: number | undefined;
  let lastMs = 0;
  let machineMs = 0;

  /** Stands still while another reading of the server's clock is a little behind the one before. */
  function nowMs(): number {
    const foundMs = serverNow(reading) + (aheadMs ?? 0);
    lastMs = Math.max(lastMs, Math.round(foundMs));
    return lastMs;
  }

  async function agree(found: Reading): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const known = await server.agreed();
      const serverMs = serverNow(found);
      const mineMs = aheadMs === undefined ? undefined : nowMs() - serverMs;
      const agreedMs = agreeOn(known, { mineMs, serverMs, processId });
      const ageMs = serverMs - (known?.checkedAt.getTime() ?? 0);
      const isConfirmed = agreedMs === known?.aheadMs && ageMs >= 0 && ageMs < CONFIRM_EVERY_MS;
      const agreed: AgreedTime = {
        aheadMs: agreedMs,
        checkedAt: new Date(serverMs),
        checkedBy: processId,
      };
      if (!isConfirmed && !(await server.agree(agreed, known))) continue;
      if (aheadMs !== undefined && Math.abs(agreedMs - aheadMs) > MAX_DIFFERENCE_MS) {
        logger.warn({ byMs: aheadMs - agreedMs }, SERVER_SET);
      }
      reading = found;
      aheadMs = agreedMs;
      return;
    }
    throw new Error('other processes always changed the service time first');
  }

  /** Reports a machine's clock that is wrong, which changes nothing. */
  function compareMachine(found: Reading): void {
    const offsetMs = Math.round(serverNow(found) - Date.now());
    if (Math.abs(offsetMs - machineMs) < MAX_DIFFERENCE_MS) return;
    machineMs = offsetMs;
    logger.warn({ offsetMs }, "the machine's clock is wrong; the database's time is used");
  }

  async function check(): Promise<void> {
    const found = await read(server);
    await agree(moreExact(reading, found));
    compareMachine(found);
  }

  await agree(reading);
  compareMachine(reading);
  const timer = setInterval(() => {
    check().catch((error: unknown) => logger.debug({ err: error }, 'the time was not checked'));
  }, CHECK_EVERY_MS).unref();
  return {
    now: () => new Date(nowMs()),
    get aheadMs() {
      return aheadMs ?? 0;
    },
    check,
    close: () => clearInterval(timer),
  };
}

const SERVER_SET = "the database server's clock was set; what waits is due as before";

/** Reads the server's clock; the quickest answer is the most exact. */
async function read(server: TimeServer): Promise<Reading> {
  let best: Reading | undefined;
  for (let n = 0; n < SAMPLES.most; n += 1) {
    if (n >= SAMPLES.least && best !== undefined && best.roundTripMs <= SAMPLES.quickMs) break;
    const askedAt = performance.now();
    const serverMs = (await server.clock()).getTime();
    const roundTripMs = performance.now() - askedAt;
    if (best !== undefined && roundTripMs >= best.roundTripMs) continue;
    best = { atMs: askedAt + roundTripMs / 2, serverMs, roundTripMs };
  }
  if (best === undefined) throw new Error('the clock was not read');
  return best;
}

/** What the server's clock shows now by a reading. */
function serverNow({ atMs, serverMs }: Reading): number {
  return serverMs + performance.now() - atMs;
}

/** By how much a reading may be wrong now, in ms. */
function errorOf({ atMs, roundTripMs }: Reading): number {
  return roundTripMs / 2 + (performance.now() - atMs) * DRIFT;
}

/** The new reading, unless it agrees with the one before and is less exact than that is by now. */
function moreExact(before: Reading, found: Reading): Reading {
  const apartMs = Math.abs(serverNow(before) - serverNow(found));
  const agrees = apartMs <= errorOf(before) + errorOf(found);
  return agrees && errorOf(before) < errorOf(found) ? before : found;
}
