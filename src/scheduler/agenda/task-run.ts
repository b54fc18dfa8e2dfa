import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../domain/logger.ts';
import type { Task, TaskOptions } from '../scheduler.ts';
import type { ClaimedTask } from './task-claims.ts';

/** What {@link createTaskRun} works with. */
export interface TaskRunDeps {
  readonly claimed: ClaimedTask;
  readonly options: TaskOptions;
  readonly handler: (task: Task) => Promise<void>;
  /** Renews the lock of the claim at `now`. Returns false when it is lost, rejects when that is unknown. */
  readonly extend: (now: Date) => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One run of a task's handler. */
export interface TaskRun {
  /** Runs the handler and notes on the claim when to run again. Never rejects. */
  run(): Promise<void>;
  /** Asks the handler to stop; the task runs again. */
  abort(reason: Error): void;
  /** Stops waiting for a handler that did not stop; its lock lapses. */
  abandon(): void;
}

const RETRY_AFTER_FAILURE_MS = 1_000;

/**
 * Makes one run. Its signal is aborted when the lock is lost: when another process took the task
 * over, or when the lock is older than `lockMs` by this process's own time.
 */
export function createTaskRun(deps: TaskRunDeps): TaskRun {
  const { claimed, options, logger } = deps;
  const { name, key } = claimed;
  const fields = { task: name, key };
  const controller = new AbortController();
  const abandoned = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  let touching: Promise<void> | undefined;

  const msLeft = () => claimed.lockedAt.getTime() + options.lockMs - deps.clock.now().getTime();

  function lose(): void {
    if (over) return;
    over = true;
    logger.warn(fields, 'a task lost its lock and is stopped; it runs again here or elsewhere');
    controller.abort(new Error('The lock of the task was lost'));
    clearTimeout(timer);
    timer = setTimeout(() => {
      logger.error(fields, 'a task that lost its lock did not stop; it is left behind');
      abandon();
    }, options.lockMs);
  }

  function watch(): void {
    clearTimeout(timer);
    const leftMs = msLeft();
    if (leftMs <= 0) lose();
    else timer = setTimeout(watch, leftMs);
  }

  async function extend(): Promise<void> {
    if (msLeft() <= 0) return lose();
    const now = deps.clock.now();
    try {
      const kept = await deps.extend(now);
      if (!kept) return lose();
      claimed.lockedAt = now;
    } catch {
      // The outage log has reported it. The lock is as old as before.
    }
    watch();
  }

  async function touch(): Promise<void> {
    if (over) return;
    touching ??= extend().finally(() => {
      touching = undefined;
    });
    await touching;
  }

  function abandon(): void {
    claimed.abandoned = true;
    abandoned.resolve();
  }

  async function handle(): Promise<void> {
    try {
      await deps.handler({ key, signal: controller.signal, touch });
      if (controller.signal.aborted) runAgain(0);
    } catch (error) {
      if (!controller.signal.aborted) logger.error({ ...fields, err: error }, 'a task failed');
      runAgain(controller.signal.aborted ? 0 : RETRY_AFTER_FAILURE_MS);
    }
  }

  function runAgain(inMs: number): void {
    // A failed run of a task that repeats waits for the next interval.
    if (!claimed.repeats) claimed.again = new Date(deps.clock.now().getTime() + inMs);
  }

  return {
    async run() {
      watch();
      await Promise.race([handle(), abandoned.promise]);
      clearTimeout(timer);
      // A renewal in flight must not end after the run, nor start the watch again.
      over = true;
      await touching;
      clearTimeout(timer);
    },
    abort(reason) {
      controller.abort(reason);
    },
    abandon,
  };
}
