import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Agenda, InMemoryNotificationChannel, type Job, toJobId } from 'agenda';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Scheduler, Task, TaskName, TaskOptions } from '../scheduler.ts';
import { createTaskRepository, notBegun } from './fenced-repository.ts';
import { createOutageLog } from './outage-log.ts';
import type { SchedulerBackend } from './task-documents.ts';
import { createTaskRun, type TaskRun } from './task-run.ts';
import { createWakeWriter } from './wake-writer.ts';

/** What the scheduler is made of. */
export interface AgendaSchedulerDeps {
  /** Its connections stay the caller's to close. */
  readonly backend: SchedulerBackend;
  /** Names this process in Agenda's documents; made unique by a suffix. */
  readonly processName: string;
  /** How often to look for tasks that other processes woke, and for those that became due. Default 500. */
  readonly processEveryMs?: number;
  readonly logger: Logger;
}

const BEAT_MS = 2_000;
const GRACE_STEP_MS = 10;
const MAX_GRACE_MS = 400;

interface Definition {
  readonly options: TaskOptions;
  readonly handler: (task: Task) => Promise<void>;
}

/**
 * The clock on Agenda. Nothing is read or written before the first `start`, `wake`, `every` or `cancel`. A process that
 * defines no tasks only wakes them, for others to run. Those four reject with `unavailable` while the database is away;
 * running tasks and polling go on by themselves when it is back.
 */
export function createAgendaScheduler(deps: AgendaSchedulerDeps): Scheduler {
  const { backend, logger, processEveryMs = 500 } = deps;
  const { tasks } = backend;
  const definitions = new Map<string, Definition>();
  const runs = new Set<TaskRun>();
  const closing = new AbortController();
  const outage = createOutageLog(logger);
  const channel = new InMemoryNotificationChannel();
  let connected: Promise<void> | undefined;
  let agenda: Agenda | undefined;
  const processName = `${deps.processName}#${randomUUID()}`;
  let peers = 0;
  let beating: NodeJS.Timeout | undefined;

  function pollNow(name: string): void {
    if (closing.signal.aborted || !definitions.has(name) || channel.state !== 'connected') return;
    const now = new Date();
    const jobId = toJobId('');
    void channel.publish({ jobId, jobName: name, nextRunAt: null, priority: 0, timestamp: now });
  }

  const claims = createTaskRepository({
    inner: backend.agenda.repository,
    tasks,
    outage,
    closing: closing.signal,
    lockMsOf: (name) => definitions.get(name)?.options.lockMs ?? 0,
    graceMsOf: (name) =>
      definitions.get(name)?.options.sharesWithPeers === true ? yieldMs(name) : 0,
    onChange: pollNow,
  });

  /** The more this process runs, the longer it leaves new ones to its peers, who look twice a second. */
  function yieldMs(name: string): number {
    if (peers === 0) return 0;
    const own = [...claims.running].filter((held) => held.name === name).length;
    return Math.min(own * GRACE_STEP_MS, MAX_GRACE_MS);
  }

  async function beat(): Promise<void> {
    peers = (await backend.presence?.beat(processName, new Date()).catch(() => peers)) ?? 0;
  }

  async function onDatabase<T>(use: () => Promise<T>): Promise<T> {
    try {
      connected ??= backend.agenda.connect();
      connected.catch(() => {
        connected = undefined;
      });
      await connected;
      return await use();
    } catch (cause) {
      const message = 'The scheduler cannot reach its database';
      throw new DomainError('unavailable', 'database_unavailable', message, { cause });
    }
  }

  const writeWake = createWakeWriter((name, key, at) =>
    onDatabase(() => tasks.wake(name, key, at)),
  );

  async function runJob(job: Job, { options, handler }: Definition): Promise<void> {
    const held = claims.heldTask(job.attrs);
    const { key = '' } = (job.attrs.data ?? {}) as { readonly key?: string };
    const repeats = job.attrs.type === 'single';
    const run = createTaskRun({ key, repeats, held, options, handler, tasks, outage, logger });
    runs.add(run);
    if (closing.signal.aborted) run.abort(stopping());
    await run.run();
    runs.delete(run);
  }

  function createAgenda(): Agenda {
    const made = new Agenda({
      name: processName,
      backend: {
        name: backend.agenda.name,
        repository: claims.repository,
        ownsConnection: false,
        // Connected before: Agenda's own call would leave a failure unhandled.
        async connect() {},
        async disconnect() {},
      },
      notificationChannel: channel,
      processEvery: processEveryMs,
      maxConcurrency: Number.MAX_SAFE_INTEGER,
      removeOnComplete: false,
    });
    made.on('error', (error: Error) => {
      if (error !== notBegun) logger.error({ err: error }, 'Agenda reports an error');
    });
    // Typed by hand: Agenda's first overload takes any function for one with a callback.
    const define: (name: string, processor: (job: Job) => Promise<void>, options: object) => void =
      made.define.bind(made);
    for (const [name, definition] of definitions) {
      const { concurrency } = definition.options;
      // Locks are watched by the run itself. Agenda's timer lasts half of `lockLifetime` or of the polling interval,
      // whichever is longer, and outlives the run.
      const limits = { concurrency, lockLimit: concurrency, lockLifetime: 1 };
      define(name, (job) => runJob(job, definition), limits);
    }
    return made;
  }

  return {
    define(name: TaskName, options, handler) {
      if (agenda) throw new Error(`Task ${name} is defined after the scheduler was started`);
      definitions.set(name, { options, handler });
    },
    async start() {
      await onDatabase(async () => {
        agenda ??= createAgenda();
        await agenda.start();
        await beat();
        beating ??= setInterval(() => void beat(), BEAT_MS).unref();
      });
    },
    async wake(name, key, at) {
      await writeWake(name, key, at);
      if (at.getTime() <= Date.now()) pollNow(name);
    },
    every: (name, intervalMs) =>
      onDatabase(() => tasks.repeat(name, intervalMs, new Date())).then(() => pollNow(name)),
    cancel: (name, key) => onDatabase(() => tasks.cancel(name, key)),
    async close(drainMs) {
      closing.abort();
      clearInterval(beating);
      if (beating !== undefined) await backend.presence?.leave(processName).catch(() => undefined);
      for (const run of runs) run.abort(stopping());
      const deadline = new AbortController();
      const drained = (async () => {
        await claims.claimsSettled();
        await Promise.all([...claims.running].map(({ ended }) => ended.promise));
      })();
      await Promise.race([
        drained,
        wait(drainMs, undefined, { signal: deadline.signal }).catch(() => {}),
      ]);
      deadline.abort();
      for (const run of runs) {
        logger.warn({}, 'A task did not stop in time; its lock is left to lapse');
        run.abandon();
      }
      await agenda?.stop(false);
      // A process that is done must not be held open by Agenda's check on a run, the last of which fires by then.
      const checkedAt = claims.activeAt() + processEveryMs / 2 + 5;
      await wait(Math.max(0, checkedAt - performance.now()));
    },
  };
}

function stopping(): Error {
  return new Error('The scheduler is closing');
}
