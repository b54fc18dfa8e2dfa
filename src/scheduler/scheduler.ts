/** The kinds of task; `key` is a crawler for `crawl`, and empty for the others. */
export type TaskName = 'crawl' | 'timeout' | 'probe' | 'notice' | 'reconcile';

/** One run of a task. */
export interface Task {
  readonly key: string;
  /**
   * Aborted when the task's lock was lost or the scheduler closes. A task started by `wake` then
   * runs again.
   */
  readonly signal: AbortSignal;
  /**
   * Keeps the task's lock for another `lockMs`; a run longer than that must call it. Never rejects:
   * when the lock is lost the signal is aborted, and while the database is unavailable the lock ages.
   */
  touch(): Promise<void>;
}

export interface TaskOptions {
  /**
   * How long a run keeps its lock without `touch`; after that another process takes the task over.
   */
  readonly lockMs: number;
  /** Most runs at once in this process. */
  readonly concurrency: number;
  /** Whether a process that runs many of these leaves new ones to other processes for a moment. */
  readonly sharesWithPeers?: boolean;
}

/**
 * Runs tasks when they are due, each once across all processes. A handler that throws is logged
 * and, if the task was started by `wake`, run again after a second. URLs are no tasks: a task is
 * about a crawler or the whole service.
 */
export interface Scheduler {
  /** Must precede `start`. */
  define(name: TaskName, options: TaskOptions, handler: (task: Task) => Promise<void>): void;
  start(): Promise<void>;
  /**
   * Runs the task at `at` or as soon after as a process is free: at once in this process when due,
   * within a second in another. Durable when it resolves. A wake of a running task leads to another
   * run after this one. Several wakes of the same name and key before the run begins may lead to
   * one run.
   */
  wake(name: TaskName, key: string, at: Date): Promise<void>;
  /**
   * Runs the task at once in this process, though it may run already, and writes nothing: for work
   * that is found again when the process ends before. Returns false, and does nothing, when it
   * should rather be woken. That is so in a process that does not run such tasks, closes, or leaves
   * them to its peers because it runs others. An `own` task, which no peer can do, is not left to them.
   */
  runNow(name: TaskName, key: string, own?: 'own'): boolean;
  /** Wakes tasks, also those that a process runs which has ended. */
  takeOver(name: TaskName, keys: readonly string[]): Promise<void>;
  /** Runs the task every `intervalMs`, in one process at a time. Replaces an earlier interval. */
  every(name: TaskName, intervalMs: number): Promise<void>;
  /** Starts nothing new, aborts the signals of running tasks and waits up to `drainMs` for them. */
  close(drainMs: number): Promise<void>;
}
