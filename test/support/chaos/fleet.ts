import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import { type ServiceProcess, startProcess } from '../service-process.ts';
import type { SetClock } from '../set-clock.ts';
import type { ChaosNetwork } from './chaos-network.ts';

/** What is done to a fleet. */
export const DISTURBANCES = ['kill', 'drain', 'stop', 'database', 'clock', 'network'] as const;
export type Disturbance = (typeof DISTURBANCES)[number];
/** What is done unless it is said. */
export const USUAL_DISTURBANCES: readonly Disturbance[] = ['kill', 'drain', 'stop', 'database'];

/** A database that can be killed and started again. */
export interface KillableDatabase {
  /** What it said last if it ended by itself. */
  readonly crash: string | undefined;
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Places for service processes, each of which has at most one. */
export interface Fleet extends AsyncDisposable {
  /** Processes that are there and not stopped. */
  running(): readonly ServiceProcess[];
  /** Whether every place has a running process and the database is there. */
  isWhole(): boolean;
  /**
   * Disturbs one place, the database or the network to it, and puts it right after `ms`. A clock is
   * wrong by `ms` from then on. What is disturbed already is left alone. Resolves when it has been put
   * right.
   */
  disturb(what: Disturbance, place: number, ms: number): Promise<void>;
  /** How often each was done. */
  readonly done: Readonly<Record<Disturbance, number>>;
  /** The longest time that a killed database was unavailable, in seconds. */
  readonly longestOutage: number;
  /** What the database said last each time it ended by itself. It was started again. */
  readonly crashes: readonly string[];
  /** Faults of the processes themselves: drains that ended with another code than 0, and ends that nobody asked for. */
  readonly faults: readonly string[];
  /** The last lines that the processes logged. */
  log(): string;
}

/** A process has this long to start, its database being there. */
const START_MS = 90_000;
/** A process that is asked to stop has six times its `SHUTDOWN_SECONDS`, for machines are busy. */
const DRAIN_MS = 60_000;
const LOGGED_CHARACTERS = 8_000;

/** What a fleet is started with. */
interface FleetOptions {
  readonly env: Readonly<Record<string, string>>;
  readonly places: number;
  readonly database: KillableDatabase | undefined;
  /** A clock for each place, if they are to be wrong. */
  readonly clocks: readonly SetClock[];
  readonly network: ChaosNetwork | undefined;
}

/** Starts a process at each place. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { env, places, database, clocks, network } = options;
  const processes: (ServiceProcess | undefined)[] = [];
  const stopped = new Set<number>();
  const disturbed = new Set<number | Disturbance>();
  const done = { kill: 0, drain: 0, stop: 0, database: 0, clock: 0, network: 0 };
  const faults: string[] = [];
  const logs: string[] = [];
  /** How often the database, or the network to it, was disturbed or put right. */
  let databaseKills = 0;
  /** Resolves when a killed database is there again. */
  let databaseBack: Promise<unknown> = Promise.resolve();
  let longestOutage = 0;
  const crashes: string[] = [];
  let closing = false;

  async function start(place: number): Promise<void> {
    const ofPlace = { ...env, ...clocks[place]?.env };
    const begin = () =>
      eventually(async () => (closing ? undefined : await startProcess(ofPlace)), {
        timeoutMs: START_MS,
        what: 'a process that starts',
      });
    const killsBefore = databaseKills;
    const started = await begin().catch(async (error: unknown) => {
      // A database that was killed may need longer to recover, on a busy machine.
      await databaseBack;
      if (databaseKills === killsBefore) throw error;
      return await begin();
    });
    processes[place] = started;
    if (closing) await started?.kill9();
  }

  async function restart(killed: KillableDatabase, ms: number): Promise<void> {
    const from = performance.now();
    await killed.kill();
    await wait(ms);
    await killed.start();
    longestOutage = Math.max(longestOutage, (performance.now() - from) / 1_000);
  }

  function keepLog(service: ServiceProcess): void {
    logs.push((service.output + service.errors).slice(-LOGGED_CHARACTERS));
    if (logs.length > 20) logs.shift();
  }

  const disturbProcess: Readonly<
    Record<
      'kill' | 'drain' | 'stop',
      (service: ServiceProcess, place: number, ms: number) => Promise<void>
    >
  > = {
    async kill(service, place, ms) {
      processes[place] = undefined;
      await service.kill9();
      keepLog(service);
      await wait(ms);
      await start(place);
    },
    async drain(service, place, ms) {
      processes[place] = undefined;
      const killsBefore = databaseKills;
      const late = setTimeout(() => {
        faults.push(`a process that was asked to stop had not ended after ${DRAIN_MS} ms`);
        service.process.kill('SIGKILL');
      }, DRAIN_MS);
      const code = await service.terminate();
      clearTimeout(late);
      keepLog(service);
      if (code !== 0 && databaseKills === killsBefore) {
        faults.push(`a process that was asked to stop ended with code ${code}`);
      }
      await wait(ms);
      await start(place);
    },
    async stop(service, place, ms) {
      stopped.add(place);
      service.process.kill('SIGSTOP');
      try {
        await wait(ms);
      } finally {
        service.process.kill('SIGCONT');
        stopped.delete(place);
      }
    },
  };

  async function disturb(what: Disturbance, place: number, ms: number): Promise<void> {
    const key = what === 'kill' || what === 'drain' || what === 'stop' ? place : what;
    if (disturbed.has(key)) return;
    disturbed.add(key);
    try {
      if (what === 'database') {
        if (database === undefined) return;
        databaseKills += 1;
        const restarted = restart(database, ms);
        // The caller awaits it as well.
        databaseBack = restarted.catch(() => undefined);
        await restarted;
        databaseKills += 1;
      } else if (what === 'network') {
        databaseKills += 1;
        await network?.disturb(ms);
        databaseKills += 1;
      } else if (what === 'clock') await clocks[place]?.set(ms);
      else {
        const service = processes[place];
        if (service === undefined) return;
        await disturbProcess[what](service, place, ms);
      }
      done[what] += 1;
    } finally {
      disturbed.delete(key);
    }
  }

  await Promise.all(Array.from({ length: places }, (_, place) => start(place)));
  /** As supervisors do: it starts a process or a database again that has ended by itself. */
  const supervisor = setInterval(() => {
    for (const [place, service] of processes.entries()) {
      const code = service?.process.exitCode ?? null;
      if (service === undefined || code === null || disturbed.has(place)) continue;
      processes[place] = undefined;
      keepLog(service);
      faults.push(`a process ended by itself with code ${code}: ${service.output.slice(-500)}`);
      start(place).catch((error: unknown) => faults.push(String(error)));
    }
    const { crash } = database ?? {};
    if (crash === undefined || disturbed.has('database')) return;
    crashes.push(crash);
    disturb('database', 0, 0).catch((error: unknown) => faults.push(String(error)));
  }, 500);

  return {
    done,
    get longestOutage() {
      return longestOutage;
    },
    crashes,
    faults,
    running: () =>
      processes.filter((each, place) => each && !stopped.has(place)) as ServiceProcess[],
    isWhole: () => disturbed.size === 0,
    disturb,
    log() {
      const now = processes.map((each) =>
        ((each?.output ?? '') + (each?.errors ?? '')).slice(-LOGGED_CHARACTERS),
      );
      return [...logs, ...now].join('\n');
    },
    async [Symbol.asyncDispose]() {
      closing = true;
      clearInterval(supervisor);
      await Promise.all(
        processes.map(async (service) => {
          // One that is stopped dies of it as well.
          await service?.kill9();
        }),
      );
    },
  };
}
