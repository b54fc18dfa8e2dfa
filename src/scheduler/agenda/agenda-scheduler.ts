import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Agenda, InMemoryNotificationChannel, type Job, toJobId } from 'agenda';
import { type Clock, systemClock } from '../../domain/clock.ts';
import { databaseUnavailable } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Scheduler, Task, TaskName, TaskOptions } from '../scheduler.ts';
import { createFencedRepository, notBegun } from './fenced-repository.ts';
import { createOutageLog } from './outage-log.ts';
import { createPeers } from './peers.ts';
import { type ClaimedTask, createTaskClaims } from './task-claims.ts';
import type { SchedulerBackend } from './task-documents.ts';
import { createTaskRun, type TaskRun } from './task-run.ts';
import { createWakeWriter } from './wake-writer.ts';

/** What the scheduler is made of. */
export interface AgendaSchedulerDeps {
  /** The caller closes its connections. */
  readonly backend: SchedulerBackend;
  /** Names this process among those that run tasks; a suffix makes it unique. */
  readonly processName: string;
  /**
   * How often to poll for tasks that other processes woke, and for those that became due. Default:
   * 500.
   */
  readonly processEveryMs?: number;
  /** The time that is in the database. Default: that of this process. */
  readonly clock?: Clock;
  readonly logger: Logger;
}

/**
 * How often a process looks for tasks that others woke: the more processes, the rarer, because all
 * look at one index; and rarely while it runs many itself.
 */
const LOOK_MS_PER_PROCESS = 8;
const LEAST_LOOK_MS = 80;
const MANY_RUNS = 20;

/** How much longer a process leaves new tasks to its peers for each one that it runs. */
const YIELD_STEP_MS = 10;
const MAX_YIELD_MS = 400;

/** Renews what has no lock: a run without a document. The database is not asked. */
const keepLock = (): Promise<boolean> => Promise.resolve(true);

interface Definition {
  readonly options: TaskOptions;
  readonly handler: (task: Task) => Promise<void>;
}

/**
 * Makes the scheduler on Agenda. Nothing is read or written before the first `start`, `wake` or
 * `every`; these three reject with `unavailable` while the database is. Running tasks and
 * polling continue by themselves when it is back. A process that defines no tasks only wakes them,
 * and others run them.
 */
export function createAgendaScheduler(deps: AgendaSchedulerDeps): Scheduler {
  const { backend, logger, clock = systemClock, processEveryMs = 500 } = deps;
  const { tasks } = backend;
  const definitions = new Map<string, Definition>();
  const runs = new Set<TaskRun>();
  /** The runs that were started without a claim. */
  const unclaimed = new Set<ClaimedTask>();
  const closing = new AbortController();
  const outage = createOutageLog(logger);
  const channel = new InMemoryNotificationChannel();
  let connected: Promise<void> | undefined;
  let agenda: Agenda | undefined;
  let looking: Promise<void> | undefined;
  const processName = `${deps.processName}#${randomUUID()}`;
  const peers = createPeers(backend.presence, processName, clock);

  function pollNow(name: string, count: number): void {
    claims.expect(name, count);
    poll(name);
  }

  function poll(name: string): void {
    if (closing.signal.aborted || !definitions.has(name) || channel.state !== 'connected') return;
    const now = new Date();
    const jobId = toJobId('');
    void channel.publish({ jobId, jobName: name, nextRunAt: null, priority: 0, timestamp: now });
  }

  const common = {
    tasks,
    clock,
    closing: closing.signal,
    lockMs: (name: string) => definitions.get(name)?.options.lockMs ?? 0,
    onChange: (name: string) => pollNow(name, Number.POSITIVE_INFINITY),
  };
  const claims = createTaskClaims({
    ...common,
    outage,
    shortestLockMs: () =>
      Math.min(...[...definitions.values()].map(({ options }) => options.lockMs)),
    lookMs,
    yieldMs: (name) =>
      definitions.get(name)?.options.sharesWithPeers === true ? yieldMs(name) : 0,
    onClaim: poll,
  });
  const fenced = createFencedRepository({
    ...common,
    claims,
    concurrency: (name) => definitions.get(name)?.options.concurrency ?? 0,
  });

  function lookMs(): number {
    // Agenda polls each name by a timer of its own, all at nearly the same time.
    if (backend.presence === undefined) return processEveryMs * 0.8;
    if (fenced.running.size + unclaimed.size > MANY_RUNS) return processEveryMs;
    const wanted = (peers.count + 1) * LOOK_MS_PER_PROCESS;
    return Math.min(processEveryMs, Math.max(LEAST_LOOK_MS, wanted));
  }

  /** Looks for what others woke more often than Agenda polls. */
  async function lookOften(): Promise<void> {
    while (!closing.signal.aborted) {
      await wait(lookMs(), undefined, { signal: closing.signal, ref: false }).catch(
        () => undefined,
      );
      if (closing.signal.aborted) return;
      try {
        for (const name of await claims.look()) poll(name);
      } catch {
        // The outage log has reported it.
      }
    }
  }

  /**
   * The more this process runs, the longer it leaves new tasks to its peers, which poll for them.
   */
  function yieldMs(name: string): number {
    if (peers.count === 0) return 0;
    return Math.min(countOwn(name) * YIELD_STEP_MS, MAX_YIELD_MS);
  }

  /** How many tasks of this name run in this process. */
  function countOwn(name: string): number {
    const all = [...fenced.running, ...unclaimed];
    return all.filter((task) => task.name === name).length;
  }

  async function onDatabase<T>(use: () => Promise<T>): Promise<T> {
    try {
      connected ??= backend.connect();
      connected.catch(() => {
        connected = undefined;
      });
      await connected;
      return await use();
    } catch (cause) {
      throw databaseUnavailable('The scheduler cannot reach its database; try again.', cause);
    }
  }

  const writeWake = createWakeWriter((name, key, at) =>
    onDatabase(() => tasks.wake(name, key, at)),
  );

  async function runJob(job: Job, definition: Definition): Promise<void> {
    const claimed = fenced.claimedTask(job.attrs);
    const extend = (now: Date) => outage.write(() => tasks.extend(claimed, now));
    await runTask(claimed, extend, definition);
  }

  async function runTask(
    claimed: ClaimedTask,
    extend: (now: Date) => Promise<boolean>,
    { options, handler }: Definition,
  ): Promise<void> {
    const run = createTaskRun({ claimed, options, handler, extend, clock, logger });
    runs.add(run);
    if (closing.signal.aborted) run.abort(stopping());
    await run.run();
    runs.delete(run);
  }

  /** Runs a task that has no document; one that has to run again gets one. */
  async function runUnclaimed(name: string, key: string, definition: Definition): Promise<void> {
    const id = randomUUID();
    const ended = Promise.withResolvers<void>();
    const lockedAt = clock.now();
    const task: ClaimedTask = {
      id,
      token: id,
      name,
      key,
      repeats: false,
      lockedAt,
      abandoned: false,
      ended,
    };
    unclaimed.add(task);
    try {
      await runTask(task, keepLock, definition);
      if (task.again !== undefined && !task.abandoned) await writeWake(name, key, task.again);
    } catch (error) {
      logger.warn({ err: error, task: name, key }, 'a task that has to run again was not woken');
    } finally {
      unclaimed.delete(task);
      ended.resolve();
    }
  }

  /** Makes Agenda, which polls and starts runs. The repository decides what it may run. */
  function makeAgenda(): Agenda {
    const made = new Agenda({
      name: processName,
      backend: {
        name: backend.name,
        repository: fenced.repository,
        ownsConnection: false,
        // The scheduler has connected: a failure within Agenda would be an unhandled rejection.
        async connect() {},
        async disconnect() {},
      },
      notificationChannel: channel,
      processEvery: processEveryMs,
      maxConcurrency: Number.MAX_SAFE_INTEGER,
      removeOnComplete: false,
    });
    made.on('error', (error: Error) => {
      if (error !== notBegun) logger.error({ err: error }, 'an error within Agenda');
    });
    // Typed by hand: Agenda's first overload accepts every function as one with a callback.
    const define: (name: string, run: (job: Job) => Promise<void>, limits: object) => void =
      made.define.bind(made);
    for (const [name, definition] of definitions) {
      const { concurrency } = definition.options;
      // A run watches its lock itself. Agenda's own timer lasts half of `lockLifetime` or of the
      // polling interval, whichever is longer, and outlives the run.
      const limits = { concurrency, lockLimit: concurrency, lockLifetime: 1 };
      define(name, (job) => runJob(job, definition), limits);
    }
    return made;
  }

  /** Waits up to `drainMs` for the runs to end, and abandons the others. */
  async function drain(drainMs: number): Promise<void> {
    const deadline = new AbortController();
    const drained = (async () => {
      await claims.settled();
      const all = [...fenced.running, ...unclaimed];
      await Promise.all(all.map(({ ended }) => ended.promise));
    })();
    await Promise.race([
      drained,
      wait(drainMs, undefined, { signal: deadline.signal }).catch(() => {}),
    ]);
    deadline.abort();
    for (const run of runs) {
      logger.warn({}, 'a task did not stop in time; its lock is left to lapse');
      run.abandon();
    }
  }

  async function wake(name: TaskName, key: string, at: Date): Promise<void> {
    await writeWake(name, key, at);
    if (at <= clock.now()) pollNow(name, 1);
  }

  return {
    define(name: TaskName, options, handler) {
      if (agenda !== undefined) {
        throw new Error(`Task ${name} is defined after the scheduler was started`);
      }
      definitions.set(name, { options, handler });
    },
    async start() {
      await onDatabase(async () => {
        agenda ??= makeAgenda();
        await agenda.start();
        await peers.start();
        if (backend.presence !== undefined) looking ??= lookOften();
      });
    },
    wake,
    async takeOver(name, keys) {
      await onDatabase(async () => backend.presence?.unlock(name, keys));
      await Promise.all(keys.map((key) => wake(name, key, clock.now())));
    },
    runNow(name, key, own) {
      const definition = definitions.get(name);
      if (definition === undefined || agenda === undefined || closing.signal.aborted) return false;
      if (own === undefined && yieldMs(name) > 0) return false;
      const running = fenced.running.size + unclaimed.size;
      if (running >= definition.options.concurrency) return false;
      void runUnclaimed(name, key, definition);
      return true;
    },
    every: (name, intervalMs) =>
      onDatabase(() => tasks.repeat(name, intervalMs, clock.now())).then(() => pollNow(name, 1)),
    async close(drainMs) {
      closing.abort();
      await looking;
      await peers.leave();
      for (const run of runs) run.abort(stopping());
      await drain(drainMs);
      await agenda?.stop(false);
      // Agenda's timers on runs keep the process alive; this waits for the last one to fire.
      const checkedAt = fenced.activeAt() + processEveryMs / 2 + 5;
      await wait(Math.max(0, checkedAt - performance.now()));
    },
  };
}

function stopping(): Error {
  return new Error('The scheduler is closing');
}
