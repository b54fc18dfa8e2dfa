/** The kinds of task the clock runs; `key` is a crawler for the first two. */
export type TaskName = 'crawl' | 'retry' | 'timeout' | 'probe' | 'notice' | 'reconcile';

/** One run of a task. */
export interface Task {
  readonly key: string;
  /** Aborted when the task's lock was lost or the scheduler closes; a task that was woken then runs again. */
  readonly signal: AbortSignal;
  /**
   * Keeps the task's lock for another `lockMs`; a run longer than that must call it. Never rejects: when the lock is lost
   * the signal is aborted, and while the database is away the lock grows older.
   */
  touch(): Promise<void>;
}

export interface TaskOptions {
  /** How long a run keeps its lock without `touch`; after that another process takes the task over. */
  readonly lockMs: number;
  /** Most runs at once in this process. */
  readonly concurrency: number;
  /** Whether a process that runs many of it leaves new ones to the others for a moment. */
  readonly sharesWithPeers?: boolean;
}

/**
 * The clock: runs tasks at their time, each once across all processes. A handler that throws is logged and, if it was woken
 * by `wake`, run again after a second. The URLs are not here: a task is about a crawler or the whole service.
 */
export interface Scheduler {
  /** Must precede `start`. */
  define(name: TaskName, options: TaskOptions, handler: (task: Task) => Promise<void>): void;
  start(): Promise<void>;
  /**
   * Runs the task at `at` or as soon after as a process is free: at once in this process when due, within a second in
   * another. Durable when it resolves. A wake for a task that is running leads to another run after it. Wakes of the same
   * name and key that are due and not yet begun may run once.
   */
  wake(name: TaskName, key: string, at: Date): Promise<void>;
  /** Runs the task every `intervalMs`, in one process at a time. Replaces an earlier interval. */
  every(name: TaskName, intervalMs: number): Promise<void>;
  /** Forgets all waiting runs of the task for `key`. */
  cancel(name: TaskName, key: string): Promise<void>;
  /** Starts nothing new, aborts the signals of running tasks, waits for them up to `drainMs`. */
  close(drainMs: number): Promise<void>;
}
