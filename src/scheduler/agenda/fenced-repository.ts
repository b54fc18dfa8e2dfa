import { randomUUID } from 'node:crypto';
import type { JobParameters, JobRepository } from 'agenda';
import type { OutageLog } from './outage-log.ts';
import type { TaskDocuments, TaskLock } from './task-documents.ts';

/** A claim while this process holds it. */
export interface HeldTask extends TaskLock {
  readonly name: string;
  /** When the lock was last renewed, as the database has it. */
  lockedAt: Date;
  /** When to run again after this run; absent when it did its work. */
  again?: Date;
  /** Set when the run is left to its lock: another process takes it over when that lapses. */
  abandoned: boolean;
  /** Resolved when the end of the run is in the database, or given up. */
  readonly ended: PromiseWithResolvers<void>;
}

/** What {@link createTaskRepository} works with. */
export interface TaskRepositoryDeps {
  readonly inner: JobRepository;
  readonly tasks: TaskDocuments;
  readonly lockMsOf: (name: string) => number;
  /** How long a due task is left to other processes before this one takes it. */
  readonly graceMsOf: (name: string) => number;
  readonly outage: OutageLog;
  /** Aborted when nothing may start any more. */
  readonly closing: AbortSignal;
  /** Called when a claimed task can start, or when there is room for another claim. */
  readonly onChange: (name: string) => void;
}

/** The repository Agenda is given, and what the scheduler needs to know of it. */
export interface TaskRepository {
  readonly repository: JobRepository;
  /** The runs that have begun and not ended. */
  readonly running: ReadonlySet<HeldTask>;
  /** The claim behind Agenda's attributes of a run that has begun. */
  heldTask(attrs: JobParameters): HeldTask;
  /** When a run last began or ended, by `performance.now()`. */
  activeAt(): number;
  /** Resolves when no claim is on its way from the database. */
  claimsSettled(): Promise<void>;
}

/** Rejects a run whose task was cancelled or taken over between claim and start; Agenda then drops it. */
export const notBegun = new Error('The task was cancelled or taken over before it began');

/** Keeps Agenda from looking at locks by itself: its check neither aborts a run nor tells a lost lock from a slow one. */
const neverLapses = new Date(8.64e15);
const lapsedEveryMs = 1_000;
const retryMs = 250;

/** Agenda's repository with its claims and state changes replaced by fenced ones. Its other calls go to `inner`. */
export function createTaskRepository(deps: TaskRepositoryDeps): TaskRepository {
  const { inner, tasks, outage, closing } = deps;
  const claimed = new Map<string, HeldTask>();
  const begun = new WeakMap<JobParameters, HeldTask>();
  const running = new Set<HeldTask>();
  const claiming = new Map<string, { again: boolean; done: Promise<unknown> }>();
  let activeAt = Number.NEGATIVE_INFINITY;
  const lapsedCheckAt = new Map<string, number>();
  const waiting = new Set<string>();

  /** Repeats a write through an outage for as long as the lock can be ours. */
  async function persist<T>(held: HeldTask, write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await outage.watch(write);
      } catch {
        // The outage log has it.
        const lapsesAt = held.lockedAt.getTime() + deps.lockMsOf(held.name);
        if (held.abandoned || closing.aborted || Date.now() >= lapsesAt) return undefined;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
  }

  async function claim(name: string): Promise<JobParameters | undefined> {
    const token = randomUUID();
    const now = new Date();
    const yieldMs = deps.graceMsOf(name);
    let job = await tasks.claimDue(name, token, now, new Date(now.getTime() - yieldMs));
    if (!job && yieldMs > 0) lookAfter(name, yieldMs);
    if (!job && (lapsedCheckAt.get(name) ?? 0) <= now.getTime()) {
      const lockedBefore = new Date(now.getTime() - deps.lockMsOf(name));
      job = await tasks.claimLapsed(name, token, lockedBefore, now);
      if (!job) lapsedCheckAt.set(name, now.getTime() + lapsedEveryMs);
    }
    if (!job) return undefined;
    const id = String(job._id);
    const ended = Promise.withResolvers<void>();
    const held: HeldTask = { id, token, name, lockedAt: now, abandoned: false, ended };
    if (closing.aborted) {
      await persist(held, () => tasks.finish(held));
      return undefined;
    }
    claimed.set(id, held);
    // A claim in a long row of claims starts now, not after the last of them.
    setImmediate(() => deps.onChange(name));
    return { ...job, lockedAt: neverLapses };
  }

  /** Looks again when what is due now is no longer left to others. */
  function lookAfter(name: string, yieldMs: number): void {
    if (waiting.has(name)) return;
    waiting.add(name);
    setTimeout(() => {
      waiting.delete(name);
      deps.onChange(name);
    }, yieldMs).unref();
  }

  async function next(name: string): Promise<JobParameters | undefined> {
    const inFlight = claiming.get(name);
    if (inFlight || closing.aborted) {
      // One query a name at a time keeps Agenda within its lock limit. What became due meanwhile is looked for after it.
      if (inFlight) inFlight.again = true;
      return undefined;
    }
    const done = Promise.withResolvers<void>();
    const current = { again: true, done: done.promise };
    claiming.set(name, current);
    try {
      let job: JobParameters | undefined;
      while (!job && current.again && !closing.aborted) {
        current.again = false;
        job = await outage.watch(() => claim(name));
      }
      return job;
    } catch {
      // The outage log has it; the next poll tries again.
      return undefined;
    } finally {
      claiming.delete(name);
      done.resolve();
    }
  }

  async function begin(attrs: JobParameters): Promise<void> {
    const held = claimed.get(String(attrs._id));
    if (!held) throw notBegun;
    claimed.delete(held.id);
    const ok = closing.aborted ? false : await tryBegin(held, attrs.nextRunAt);
    if (ok !== true || closing.aborted) {
      // A refused one is gone or another's. One that may have begun has used its due time up, and must get another.
      await persist(held, () => tasks.finish(held, ok === false ? undefined : held.lockedAt));
      setImmediate(() => deps.onChange(held.name));
      throw notBegun;
    }
    begun.set(attrs, held);
    running.add(held);
  }

  /** Undefined when the database did not say: not repeated, because a begun task looks like a cancelled one. */
  async function tryBegin(held: HeldTask, nextRunAt: Date | null): Promise<boolean | undefined> {
    try {
      return await outage.watch(() => tasks.begin(held, nextRunAt, new Date()));
    } catch {
      // The outage log has it.
      return undefined;
    }
  }

  async function end(held: HeldTask): Promise<void> {
    if (!held.abandoned) await persist(held, () => tasks.finish(held, held.again));
    running.delete(held);
    activeAt = performance.now();
    held.ended.resolve();
    setImmediate(() => deps.onChange(held.name));
  }

  async function release(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const held = claimed.get(id);
      if (!held) continue;
      claimed.delete(id);
      await persist(held, () => tasks.finish(held));
    }
  }

  const repository: JobRepository = {
    connect: () => inner.connect(),
    queryJobs: (options) => inner.queryJobs(options),
    getJobsOverview: () => inner.getJobsOverview(),
    getDistinctJobNames: () => inner.getDistinctJobNames(),
    getJobById: (id) => inner.getJobById(id),
    getQueueSize: () => inner.getQueueSize(),
    removeJobs: (options) => inner.removeJobs(options),
    saveJob: (job, options) => inner.saveJob(job, options),
    lockJob: (job, options) => inner.lockJob(job, options),
    disableJobs: (options) => inner.disableJobs(options),
    enableJobs: (options) => inner.enableJobs(options),
    purgeAllJobs: () => inner.purgeAllJobs(),
    getNextJobToRun: (name) => next(name),
    saveJobState(attrs) {
      activeAt = performance.now();
      const held = begun.get(attrs);
      if (!held) return begin(attrs);
      // Agenda has just cleared this, and gives up on a run without it, however long its end takes to write.
      attrs.lockedAt = neverLapses;
      return end(held);
    },
    unlockJob: (attrs) => release([String(attrs._id)]),
    unlockJobs: (ids) => release(ids.map(String)),
  };
  return {
    repository,
    running,
    heldTask(attrs) {
      const held = begun.get(attrs);
      if (!held) throw notBegun;
      return held;
    },
    activeAt: () => activeAt,
    async claimsSettled() {
      await Promise.all([...claiming.values()].map(({ done }) => done));
    },
  };
}
