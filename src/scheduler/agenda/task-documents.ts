/**
 * One claim of a task's document. `token` is unique to the claim, so a claim whose lock has lapsed
 * can change nothing any more.
 */
export interface TaskLock {
  readonly id: string;
  readonly token: string;
  /** Whether the task repeats by its interval, so that the end of a run does not remove it. */
  readonly repeats: boolean;
}

/** A task that was just locked. */
export interface LockedTask extends TaskLock {
  /** Empty for a task that repeats. */
  readonly key: string;
}

/**
 * The scheduler's reads and writes of Agenda's documents. One document stands for all waiting runs
 * of a name and key, so a task never runs twice at once. Every write by a run is fenced: it changes
 * nothing once the lock is lost. Agenda's own `saveJobState` would let a process that was stopped
 * for a while unlock or finish a task that another process took over. Its `unique` and `every`
 * clear the lock of a running task.
 */
export interface TaskDocuments {
  /**
   * Makes the task due at `at`, unless it is due earlier anyway. On a running task it asks for
   * another run.
   */
  wake(name: string, key: string, at: Date): Promise<void>;
  /**
   * Makes the task due every `intervalMs`: a new one at once, an existing one within the interval.
   */
  repeat(name: string, intervalMs: number, now: Date): Promise<void>;
  /**
   * The names of which a task is due at `now`, or has a lock that was last renewed at `lockedBefore`
   * or earlier.
   */
  namesDue(now: Date, lockedBefore: Date): Promise<readonly string[]>;
  /**
   * Locks for `token` the task that has been due longest, at `dueBy` (default `now`) or before, and
   * begins its run. The task is due again when it is woken from now on, or one interval from now.
   */
  claimDue(name: string, token: string, now: Date, dueBy?: Date): Promise<LockedTask | undefined>;
  /** The same for a task whose lock was last renewed at `lockedBefore` or earlier. */
  claimLapsed(
    name: string,
    token: string,
    lockedBefore: Date,
    now: Date,
  ): Promise<LockedTask | undefined>;
  /** Renews the lock. Returns false when it is lost. */
  extend(lock: TaskLock, now: Date): Promise<boolean>;
  /**
   * Ends a run or a claim. The task is due again at `again`, or when it was woken during the run, else
   * removed. Does nothing when the lock is lost. Returns whether the task may be due.
   */
  finish(lock: TaskLock, again?: Date): Promise<boolean>;
}

/** A database that holds tasks. */
export interface SchedulerBackend {
  /** How Agenda shows it. */
  readonly name: string;
  /** Makes what the tasks need in the database; repeated calls change nothing. */
  connect(): Promise<void>;
  readonly tasks: TaskDocuments;
  /** Absent where there is only one process. */
  readonly presence?: Presence;
}

/** Which processes run tasks. */
export interface Presence {
  /** Registers this process as running tasks. Returns how many others have done so lately. */
  heartbeat(processName: string, now: Date): Promise<number>;
  leave(processName: string): Promise<void>;
  /** Takes the locks of tasks from their holders. */
  unlock(name: string, keys: readonly string[]): Promise<void>;
}

/** The value that makes a task's document unique; a repeating task has no key. */
export function taskIdentity(name: string, key?: string): string {
  return key === undefined ? name : `${name}/${key}`;
}
