const parent = process.ppid;

/**
 * Calls `then` when the parent process has ended. npm runs programs under a shell that does not
 * forward signals; when npm dies, they get another parent. It counts from when this file was loaded.
 */
export function whenOrphaned(then: () => void): void {
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    then();
  }, 500);
  timer.unref();
}

/** Variable that a parent sets for a process which has to stop when that parent has ended. */
export const STOPS_WITH_PARENT = 'QUEUED_CRAWLER_STOPS_WITH_PARENT';

/** Whether the parent, by its environment, wants this process to stop with it. */
export function stopsWithParent(env: Readonly<Record<string, string | undefined>>): boolean {
  return env[STOPS_WITH_PARENT] !== undefined;
}
