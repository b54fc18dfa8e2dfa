/**
 * Calls `then` when the parent process has ended. npm runs programs under a shell that does not
 * forward signals; when npm dies, they get another parent.
 */
export function whenOrphaned(then: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    then();
  }, 500);
  timer.unref();
}
