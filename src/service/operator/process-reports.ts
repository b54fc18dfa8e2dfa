import { performance } from 'node:perf_hooks';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Database, ProcessReport } from '../../domain/process-report.ts';
import type { ProcessStore } from '../../store/store.ts';

/** What is fixed about a process. */
export type ProcessIdentity = Pick<
  ProcessReport,
  'processId' | 'osProcess' | 'role' | 'version' | 'startedAt'
>;

/** What a process is doing at this moment. */
export type ProcessLoad = Pick<
  ProcessReport,
  'crawlers' | 'crawls' | 'deliveries' | 'browserPages'
>;

/** The database and the processes that work on it. */
export interface Installation {
  readonly database: Database;
  /** How long the database took to answer just now. */
  readonly latencyMs: number;
  /** Those that reported within {@link LIVE_MS}; the one that answers first, the others by name. */
  readonly processes: readonly ProcessReport[];
}

/** Reports this process, and reads the reports of all. */
export interface ProcessReports {
  /**
   * Reports this process every {@link REPORT_MS} until it is closed. Not needed where the database
   * has one process only.
   */
  start(): Disposable;
  installation(): Promise<Installation>;
}

/** How often a process reports. */
const REPORT_MS = 10_000;
/** How long a process may be silent before it counts as ended or hanging. */
const LIVE_MS = 30_000;
const MICROSECONDS = 1_000;

/** Makes the reports. */
export function createProcessReports(deps: {
  readonly store: ProcessStore;
  readonly clock: ServiceClock;
  readonly logger: Logger;
  readonly identity: ProcessIdentity;
  readonly load: () => ProcessLoad;
}): ProcessReports {
  const { store, clock, logger, identity } = deps;
  const measureUse = createUseMeter();

  const ownReport = (): ProcessReport => ({
    ...identity,
    ...deps.load(),
    ...measureUse(),
    memoryBytes: process.memoryUsage.rss(),
    reportedAt: wallNow(clock),
  });

  return {
    start() {
      const report = (): void => {
        store.report(ownReport()).catch((error: unknown) => {
          logger.debug({ err: error }, 'the process could not report itself');
        });
      };
      const timer = setInterval(report, REPORT_MS).unref();
      report();
      return { [Symbol.dispose]: () => clearInterval(timer) };
    },

    async installation() {
      const askedAt = performance.now();
      const database = await store.database();
      const latencyMs = performance.now() - askedAt;
      const since = new Date(wallNow(clock).getTime() - LIVE_MS);
      const others = (await store.list(since)).filter(
        ({ processId }) => processId !== identity.processId,
      );
      return { database, latencyMs, processes: [ownReport(), ...others] };
    },
  };
}

/** Measures what the process has used since it was asked before; at first since it started. */
function createUseMeter(): () => Pick<ProcessReport, 'cpuCores' | 'eventLoopUse'> {
  let cpu = { user: 0, system: 0 };
  let at = performance.now() - process.uptime() * 1_000;
  let loop: ReturnType<typeof performance.eventLoopUtilization> | undefined;
  return () => {
    const used = process.cpuUsage();
    const now = performance.now();
    const busy = performance.eventLoopUtilization();
    const since = loop === undefined ? busy : performance.eventLoopUtilization(busy, loop);
    const cpuMs = (used.user + used.system - cpu.user - cpu.system) / MICROSECONDS;
    const cpuCores = cpuMs / Math.max(now - at, 1);
    cpu = used;
    at = now;
    loop = busy;
    return { cpuCores, eventLoopUse: since.utilization };
  };
}
