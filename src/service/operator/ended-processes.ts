import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { isUnavailable } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import { oneAtATime } from '../../domain/one-at-a-time.ts';
import { hasEnded, osProcessName } from '../../domain/os-process.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Store } from '../../store/store.ts';

/** What the watch works with. */
export interface EndedProcessesDeps {
  readonly store: Pick<Store, 'processes' | 'shares'>;
  readonly scheduler: Pick<Scheduler, 'takeOver'>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}

const LOOK_MS = 500;
/** How often the other processes are read. */
const READ_MS = 5_000;
/** The leases of a process that reported itself earlier have lapsed. */
const REPORTED_MS = 30_000;
/**
 * Consecutive checks after which a process counts as ended, so that data left in its sockets has
 * drained.
 */
const CONFIRMATIONS = 2;

/**
 * Watches the other processes of this machine. The crawlers and shares of one that has ended without
 * giving them back, because it was killed for instance, are free at once instead of when its leases
 * lapse. Of a process of this machine it is certain that it writes and crawls nothing more. A
 * process that starts anew takes over so what it was doing before. Whose machine does not tell
 * which processes run has nothing to watch.
 */
export function watchEndedProcesses(deps: EndedProcessesDeps): Disposable {
  const { store, scheduler, clock, logger } = deps;
  const own = osProcessName();
  const watched = new Map<string, { readonly name: string; looks: number }>();
  let nextReadMs = 0;

  async function read(): Promise<void> {
    const since = new Date(wallNow(clock).getTime() - REPORTED_MS);
    const reports = await store.processes.list(since);
    watched.clear();
    for (const { processId, osProcess } of reports) {
      if (osProcess === undefined || osProcess === own) continue;
      watched.set(processId, { name: osProcess, looks: 0 });
    }
  }

  async function takeOver(processId: string): Promise<void> {
    // One of those that see it does so.
    if (!(await store.processes.remove(processId))) return;
    const now = clock.now();
    const { crawlerIds, shares } = (await store.shares?.endOf(processId, now)) ?? NOTHING;
    if (crawlerIds.length + shares === 0) return;
    await scheduler.takeOver('crawl', crawlerIds);
    const left = { process: processId, crawlers: crawlerIds.length, shares };
    logger.warn(left, 'a process of this machine has ended before it gave its crawlers back');
  }

  async function look(): Promise<void> {
    if (performance.now() >= nextReadMs) {
      nextReadMs = performance.now() + READ_MS;
      await read();
    }
    for (const [processId, found] of watched) {
      if (!hasEnded(found.name)) continue;
      found.looks += 1;
      if (found.looks < CONFIRMATIONS) continue;
      watched.delete(processId);
      await takeOver(processId);
    }
  }

  const lookSafely = oneAtATime(() =>
    look().catch((error: unknown) => {
      // Its leases lapse.
      if (!isUnavailable(error)) logger.error({ err: error }, 'ended processes were not found');
    }),
  );
  const timer = setInterval(() => void lookSafely(), LOOK_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

const NOTHING = { crawlerIds: [], shares: 0 };
