import type { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Scheduler, Task } from '../scheduler/scheduler.ts';
import type { Store } from '../store/store.ts';

/** The repeating tasks' intervals, and how long tasks and the dispatcher's runs are locked. Milliseconds. */
export interface TaskTiming {
  readonly timeoutMs: number;
  readonly probeMs: number;
  readonly reconcileMs: number;
  readonly lockMs: number;
  readonly runLockMs: number;
}

/** What the tasks call. */
export interface TaskDeps {
  readonly scheduler: Scheduler;
  readonly store: Pick<Store, 'queue' | 'maintain'>;
  readonly dispatcher: Pick<Dispatcher, 'run'>;
  readonly expireOverdue: (signal: AbortSignal) => Promise<number>;
  readonly probeDue: (task: Task) => Promise<number>;
  readonly sendNotices: (task: Task) => Promise<number>;
  readonly completeBatches: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly timing: TaskTiming;
}

// The dispatcher serves crawlers by account in turn; this only bounds how many wait for that.
const CRAWLERS_PER_PROCESS = 20_000;
const WAKES_PER_RUN = 1_000;

/** Defines every task; the scheduler is started afterwards. */
export function defineTasks(deps: TaskDeps): void {
  const { scheduler, store, clock } = deps;
  const { lockMs, runLockMs } = deps.timing;
  const alone = { lockMs, concurrency: 1 };
  const crawl = { lockMs: runLockMs, concurrency: CRAWLERS_PER_PROCESS, sharesWithPeers: true };
  scheduler.define('crawl', crawl, deps.dispatcher.run);
  scheduler.define('timeout', alone, async (task) => void (await deps.expireOverdue(task.signal)));
  scheduler.define('probe', alone, async (task) => void (await deps.probeDue(task)));
  scheduler.define('notice', alone, async (task) => void (await deps.sendNotices(task)));
  scheduler.define('reconcile', alone, async (task) => {
    const now = clock.now();
    // Before the rest, which may take long.
    await wakeLost(deps, now, WAKES_PER_RUN);
    await whileTouching(task, lockMs, async () => {
      await deps.completeBatches(task.signal);
      await store.maintain(now, task.signal);
    });
  });
}

/** What finds and wakes crawlers. */
interface WakeDeps {
  readonly store: { readonly queue: Pick<Store['queue'], 'crawlersWithWorkDue'> };
  readonly scheduler: Pick<Scheduler, 'wake'>;
}

/** Wakes crawlers whose wake, or start, was lost with the process that it was left to. */
async function wakeLost({ store, scheduler }: WakeDeps, now: Date, limit: number): Promise<void> {
  const crawlerIds = await store.queue.crawlersWithWorkDue(now, limit);
  await Promise.all(crawlerIds.map((id) => scheduler.wake('crawl', id, now)));
}

/**
 * Wakes what the last process on this database has left. For a database that processes share, the
 * others do that.
 */
export function resumeCrawlers(deps: WakeDeps & Pick<TaskDeps, 'clock'>): Promise<void> {
  return wakeLost(deps, deps.clock.now(), CRAWLERS_PER_PROCESS);
}

/** Runs `work`, which may take longer than the task's lock, and renews the lock until it ends. */
async function whileTouching<Value>(
  task: Task,
  lockMs: number,
  work: () => Promise<Value>,
): Promise<Value> {
  const keeper = setInterval(() => void task.touch(), lockMs / 3);
  try {
    return await work();
  } finally {
    clearInterval(keeper);
  }
}

/** Starts the repeating tasks, in whichever process is free; `probe` only if it has an interval. */
export async function repeatTasks(scheduler: Scheduler, timing: TaskTiming): Promise<void> {
  await scheduler.every('timeout', timing.timeoutMs);
  await scheduler.every('reconcile', timing.reconcileMs);
  await scheduler.every('notice', timing.reconcileMs);
  if (timing.probeMs > 0) await scheduler.every('probe', timing.probeMs);
}
