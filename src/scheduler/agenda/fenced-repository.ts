import { randomUUID } from 'node:crypto';
import type { JobParameters, JobRepository } from 'agenda';
import type { OutageLog } from './outage-log.ts';
import type { TaskDocuments, TaskLock } from './task-documents.ts';

/** A claim while this process holds it. */
export interface ClaimedTask extends TaskLock {
  readonly name: string;
  /** When the lock was last renewed, as the database has it. */
  lockedAt: Date;
  /** When to run again after this run; absent when the run did its work. */
  again?: Date;
  /** Set when the run is given up: another process takes the task over when its lock lapses. */
  abandoned: boolean;
  /** Resolved when the end of the run is written, or when writing it was given up. */
  readonly ended: PromiseWithResolvers<void>;
}

/** What {@link createFencedRepository} works with. */
export interface FencedRepositoryDeps {
  readonly tasks: TaskDocuments;
  readonly lockMs: (name: string) => number;
  /** How long a due task is left to other processes before this one claims it. */
  readonly yieldMs: (name: string) => number;
  readonly outage: OutageLog;
  /** Aborted when nothing may start any more. */
  readonly closing: AbortSignal;
  /** Called when a claimed task can start, or when there is room for another claim. */
  readonly onChange: (name: string) => void;
}

/** The repository that Agenda works on, and what the scheduler needs to know of it. */
export interface FencedRepository {
  readonly repository: JobRepository;
  /** The runs that have begun and not ended. */
  readonly running: ReadonlySet<ClaimedTask>;
  /** The claim behind the attributes that Agenda has of a run that has begun. */
  claimedTask(attrs: JobParameters): ClaimedTask;
  /** When a run last began or ended, by `performance.now()`. */
  activeAt(): number;
  /** Resolves when no answer to a claim is outstanding. */
  claimsSettled(): Promise<void>;
}

/** Rejects a run whose lock was lost between claim and start; Agenda then drops it. */
export const notBegun = new Error('The task was taken over before it began');

/**
 * Stops Agenda from checking locks itself: its check does not abort a run, and cannot tell a lost
 * lock from a slow run.
 */
const NEVER_LAPSES = new Date(8.64e15);
const LAPSED_CHECK_MS = 1_000;
const RETRY_MS = 250;

/**
 * Makes Agenda's repository out of the fenced writes. It has the four calls that Agenda's processor
 * makes; the others throw.
 */
export function createFencedRepository(deps: FencedRepositoryDeps): FencedRepository {
  const { tasks, outage, closing } = deps;
  const claimed = new Map<string, ClaimedTask>();
  const begun = new WeakMap<JobParameters, ClaimedTask>();
  const running = new Set<ClaimedTask>();
  const claiming = new Map<string, { again: boolean; done: Promise<unknown> }>();
  let activeAt = Number.NEGATIVE_INFINITY;
  const lapsedCheckAt = new Map<string, number>();
  const yielding = new Set<string>();

  /** Repeats a write through an outage for as long as the lock can be ours. */
  async function persist<T>(task: ClaimedTask, write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await outage.watch(write);
      } catch {
        // The outage log has reported it.
        const lapsesAt = task.lockedAt.getTime() + deps.lockMs(task.name);
        if (task.abandoned || closing.aborted || Date.now() >= lapsesAt) return undefined;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  async function claim(name: string): Promise<JobParameters | undefined> {
    const token = randomUUID();
    const now = new Date();
    const yieldMs = deps.yieldMs(name);
    let job = await tasks.claimDue(name, token, now, new Date(now.getTime() - yieldMs));
    if (job === undefined && yieldMs > 0) claimAfterYield(name, yieldMs);
    if (job === undefined && (lapsedCheckAt.get(name) ?? 0) <= now.getTime()) {
      const lockedBefore = new Date(now.getTime() - deps.lockMs(name));
      job = await tasks.claimLapsed(name, token, lockedBefore, now);
      if (job === undefined) lapsedCheckAt.set(name, now.getTime() + LAPSED_CHECK_MS);
    }
    if (job === undefined) return undefined;
    const id = String(job._id);
    const ended = Promise.withResolvers<void>();
    const task: ClaimedTask = { id, token, name, lockedAt: now, abandoned: false, ended };
    if (closing.aborted) {
      await persist(task, () => tasks.finish(task));
      return undefined;
    }
    claimed.set(id, task);
    // In a long series of claims, each task starts now and not after the last claim.
    setImmediate(() => deps.onChange(name));
    return { ...job, lockedAt: NEVER_LAPSES };
  }

  /** Claims again when the tasks that are due now are no longer left to others. */
  function claimAfterYield(name: string, yieldMs: number): void {
    if (yielding.has(name)) return;
    yielding.add(name);
    setTimeout(() => {
      yielding.delete(name);
      deps.onChange(name);
    }, yieldMs).unref();
  }

  async function claimNext(name: string): Promise<JobParameters | undefined> {
    const inFlight = claiming.get(name);
    if (inFlight !== undefined || closing.aborted) {
      // One query per name at a time keeps Agenda within its lock limit. The query in flight is
      // repeated for what became due meanwhile.
      if (inFlight !== undefined) inFlight.again = true;
      return undefined;
    }
    const done = Promise.withResolvers<void>();
    const current = { again: true, done: done.promise };
    claiming.set(name, current);
    try {
      let job: JobParameters | undefined;
      while (job === undefined && current.again && !closing.aborted) {
        current.again = false;
        job = await outage.watch(() => claim(name));
      }
      return job;
    } catch {
      // The outage log has reported it; the next poll tries again.
      return undefined;
    } finally {
      claiming.delete(name);
      done.resolve();
    }
  }

  async function begin(attrs: JobParameters): Promise<void> {
    const task = claimed.get(String(attrs._id));
    if (task === undefined) throw notBegun;
    claimed.delete(task.id);
    const ok = closing.aborted ? false : await tryBegin(task, attrs.nextRunAt);
    if (ok !== true || closing.aborted) {
      // `false`: closing or taken over, so it is only unlocked. `undefined`: the write may have
      // happened and cleared the due time, so the task gets another.
      await persist(task, () => tasks.finish(task, ok === false ? undefined : task.lockedAt));
      setImmediate(() => deps.onChange(task.name));
      throw notBegun;
    }
    begun.set(attrs, task);
    running.add(task);
  }

  /**
   * Returns undefined when the call failed. It is not repeated: a task that was begun by the first
   * call cannot be told from one that was taken over.
   */
  async function tryBegin(task: ClaimedTask, nextRunAt: Date | null): Promise<boolean | undefined> {
    try {
      return await outage.watch(() => tasks.begin(task, nextRunAt, new Date()));
    } catch {
      // The outage log has reported it.
      return undefined;
    }
  }

  async function end(task: ClaimedTask): Promise<void> {
    if (!task.abandoned) await persist(task, () => tasks.finish(task, task.again));
    running.delete(task);
    activeAt = performance.now();
    task.ended.resolve();
    setImmediate(() => deps.onChange(task.name));
  }

  async function release(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const task = claimed.get(id);
      if (task === undefined) continue;
      claimed.delete(id);
      await persist(task, () => tasks.finish(task));
    }
  }

  const repository: JobRepository = {
    ...unusedCalls,
    getNextJobToRun: (name) => claimNext(name),
    saveJobState(attrs) {
      activeAt = performance.now();
      const task = begun.get(attrs);
      if (task === undefined) return begin(attrs);
      // Agenda has just cleared this, and drops a run without it while its end is being written.
      attrs.lockedAt = NEVER_LAPSES;
      return end(task);
    },
    unlockJob: (attrs) => release([String(attrs._id)]),
    unlockJobs: (ids) => release(ids.map(String)),
  };
  return {
    repository,
    running,
    claimedTask(attrs) {
      const task = begun.get(attrs);
      if (task === undefined) throw notBegun;
      return task;
    },
    activeAt: () => activeAt,
    async claimsSettled() {
      await Promise.all([...claiming.values()].map(({ done }) => done));
    },
  };
}

type UsedCall = 'getNextJobToRun' | 'saveJobState' | 'unlockJob' | 'unlockJobs';

/**
 * The calls of Agenda's clients, dashboards and `every`, none of which the scheduler uses: it
 * writes the documents itself. They throw, so that a version of Agenda that makes one is noticed.
 */
const unusedCalls: Omit<JobRepository, UsedCall> = {
  connect: unused('connect'),
  queryJobs: unused('queryJobs'),
  getJobsOverview: unused('getJobsOverview'),
  getDistinctJobNames: unused('getDistinctJobNames'),
  getJobById: unused('getJobById'),
  getQueueSize: unused('getQueueSize'),
  removeJobs: unused('removeJobs'),
  saveJob: unused('saveJob'),
  lockJob: unused('lockJob'),
  disableJobs: unused('disableJobs'),
  enableJobs: unused('enableJobs'),
  purgeAllJobs: unused('purgeAllJobs'),
};

function unused(call: keyof JobRepository): () => Promise<never> {
  return () => Promise.reject(new Error(`Agenda called ${call}, which the scheduler does not use`));
}
