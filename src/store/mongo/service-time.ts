import type { ServiceClock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import { type AgreedTime, agreeOn, NEAR_MS, type TimeServer } from './agreed-time.ts';

/** The service time that all processes on the database share, and the clock of the server. */
export interface ServiceTime extends ServiceClock {
  /** Compares the clocks; also done every half minute. */
  check(): Promise<void>;
  close(): void;
}

const SAMPLES = 3;
const CHECK_EVERY_MS = 30_000;
/** Interval at which one of the processes confirms the agreed time. */
const CONFIRM_EVERY_MS = 10_000;
/** Attempts at a write that others were quicker with. */
const MAX_TRIES = 10;

/** The server's clock by monotonic time. */
interface Reading {
  readonly atMs: number;
  readonly serverMs: number;
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
    const foundMs = reading.serverMs + performance.now() - reading.atMs + (aheadMs ?? 0);
    lastMs = Math.max(lastMs, Math.round(foundMs));
    return lastMs;
  }

  function adopt(found: Reading, agreedMs: number): void {
    reading = found;
    aheadMs = agreedMs;
  }

  async function agree(found: Reading): Promise<void> {
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      const known = await server.agreed();
      const serverMs = found.serverMs + performance.now() - found.atMs;
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
      if (aheadMs !== undefined && Math.abs(agreedMs - aheadMs) > NEAR_MS) {
        logger.warn({ byMs: aheadMs - agreedMs }, SERVER_SET);
      }
      adopt(found, agreedMs);
      return;
    }
    throw new Error('other processes always changed the service time first');
  }

  /** Reports a machine's clock that is wrong, which changes nothing. */
  function compareMachine({ atMs, serverMs }: Reading): void {
    const offsetMs = Math.round(serverMs + performance.now() - atMs - Date.now());
    if (Math.abs(offsetMs - machineMs) < NEAR_MS) return;
    machineMs = offsetMs;
    logger.warn({ offsetMs }, "the machine's clock is wrong; the database's time is used");
  }

  async function check(): Promise<void> {
    const found = await read(server);
    await agree(found);
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
  let leastMs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < SAMPLES; n += 1) {
    const askedAt = performance.now();
    const shown = await server.clock();
    const roundTripMs = performance.now() - askedAt;
    if (best !== undefined && roundTripMs >= leastMs) continue;
    leastMs = roundTripMs;
    best = { atMs: askedAt + roundTripMs / 2, serverMs: shown.getTime() };
  }
  if (best === undefined) throw new Error('the clock was not read');
  return best;
}
