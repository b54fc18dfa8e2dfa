import type { AgendaBackend, JobParameters } from 'agenda';

/** One claim of a task's document. `token` is unique to the claim, so a claim that lapsed can change nothing any more. */
export interface TaskLock {
  readonly id: string;
  readonly token: string;
}

/**
 * What the clock does to Agenda's documents beside what Agenda's own repository does. One document stands for all waiting
 * runs of a name and key, so a task never runs twice at once, and every write by a run is held to its lock: Agenda's own
 * `saveJobState` would let a process that was stopped for a while unlock or finish what another took over, and its
 * `unique` and `every` clear the lock of a running document.
 */
export interface TaskDocuments {
  /** Makes the task due at `at`, unless it is due earlier anyway. On a running task it stands for the next run. */
  wake(name: string, key: string, at: Date): Promise<void>;
  /** Makes the task due every `intervalMs`: at once when it is new, within the interval when it is not. */
  repeat(name: string, intervalMs: number, now: Date): Promise<void>;
  /** Forgets the waiting run of a task; one that has begun goes on. */
  cancel(name: string, key: string): Promise<void>;
  /** Locks the task that is due longest, since `dueBy` (default `now`) or before, for `token`. */
  claimDue(
    name: string,
    token: string,
    now: Date,
    dueBy?: Date,
  ): Promise<JobParameters | undefined>;
  /** Locks a task whose lock was last renewed at `lockedBefore` or earlier, and makes it due. */
  claimLapsed(
    name: string,
    token: string,
    lockedBefore: Date,
    now: Date,
  ): Promise<JobParameters | undefined>;
  /** Turns a claim into a run, due next at `nextRunAt` if ever. False when it was cancelled or the lock is lost. */
  begin(lock: TaskLock, nextRunAt: Date | null, now: Date): Promise<boolean>;
  /** Renews the lock; false when it is lost. */
  extend(lock: TaskLock, now: Date): Promise<boolean>;
  /** Ends a run or a claim: due again at `again` or when it was woken meanwhile, else removed. Nothing if the lock is lost. */
  finish(lock: TaskLock, again?: Date): Promise<void>;
}

/** A database as the clock uses it: Agenda's backend, and the fenced writes on the same documents. */
export interface SchedulerBackend {
  readonly agenda: AgendaBackend;
  readonly tasks: TaskDocuments;
  /** Absent where there is only one process. */
  readonly presence?: Presence;
}

/** Which processes run tasks. */
export interface Presence {
  /** Says that this one does, and learns how many others have said so lately. */
  beat(processName: string, now: Date): Promise<number>;
  leave(processName: string): Promise<void>;
}

/** The value that makes a task's document unique: the name alone for a repeating one. */
export function taskIdentity(name: string, key?: string): string {
  return key === undefined ? name : `${name}/${key}`;
}
