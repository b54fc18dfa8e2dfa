import { type JobParameters, type JobRepository, toJobId } from 'agenda';
import type { ClaimedTask, TaskClaims, TaskClaimsDeps } from './task-claims.ts';

/** The repository that Agenda works on, and what the scheduler needs to know of it. */
export interface FencedRepository {
  readonly repository: JobRepository;
  /** The runs that have begun and not ended. */
  readonly running: ReadonlySet<ClaimedTask>;
  /** The claim behind the attributes that Agenda has of a run that has begun. */
  claimedTask(attrs: JobParameters): ClaimedTask;
  /** When a run last began or ended, by `performance.now()`. */
  activeAt(): number;
}

/** Rejects a run whose lock was lost between claim and start; Agenda then drops it. */
export const notBegun = new Error('The task was taken over before it began');

/**
 * Stops Agenda from checking locks itself: its check does not abort a run, and cannot tell a lost
 * lock from a slow run.
 */
const NEVER_LAPSES = new Date(8.64e15);

/** What the repository is made of. */
export interface FencedRepositoryDeps
  extends Pick<TaskClaimsDeps, 'tasks' | 'clock' | 'lockMs' | 'closing' | 'onChange'> {
  readonly claims: TaskClaims;
  /** Most runs of this name at once. */
  readonly concurrency: (name: string) => number;
}

/**
 * Makes Agenda's repository out of the fenced writes. It has the four calls that Agenda's processor
 * makes; the others throw. A task is claimed by `getNextJobToRun`, begins with the first
 * `saveJobState`, which writes nothing, and ends with the second; `unlockJob` gives a claim back
 * that has not begun.
 */
export function createFencedRepository(deps: FencedRepositoryDeps): FencedRepository {
  const { tasks, claims, closing } = deps;
  const claimed = new Map<string, ClaimedTask>();
  const begun = new WeakMap<JobParameters, ClaimedTask>();
  const running = new Set<ClaimedTask>();
  let activeAt = Number.NEGATIVE_INFINITY;

  async function begin(attrs: JobParameters): Promise<void> {
    const task = claimed.get(String(attrs._id));
    if (task === undefined) throw notBegun;
    claimed.delete(task.id);
    // A process that slept since the claim may have lost the lock.
    const isLate = deps.clock.now().getTime() >= task.lockedAt.getTime() + deps.lockMs(task.name);
    if (isLate || closing.aborted) {
      await claims.giveBack(task);
      setImmediate(() => deps.onChange(task.name));
      throw notBegun;
    }
    begun.set(attrs, task);
    running.add(task);
  }

  async function end(task: ClaimedTask): Promise<void> {
    const wasFull = running.size + claimed.size >= deps.concurrency(task.name);
    const isLeft = task.abandoned
      ? false
      : await claims.persist(task, () => tasks.finish(task, task.again));
    running.delete(task);
    activeAt = performance.now();
    task.ended.resolve();
    if (!task.repeats && (wasFull || isLeft === true)) setImmediate(() => deps.onChange(task.name));
  }

  async function release(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const task = claimed.get(id);
      if (task === undefined) continue;
      claimed.delete(id);
      await claims.giveBack(task);
    }
  }

  const repository: JobRepository = {
    ...unusedCalls,
    async getNextJobToRun(name) {
      const task = await claims.next(name);
      if (task === undefined) return undefined;
      claimed.set(task.id, task);
      const job = { _id: toJobId(task.id), name, type: 'normal', priority: 0, data: {} } as const;
      return { ...job, nextRunAt: null, lockedAt: NEVER_LAPSES };
    },
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
