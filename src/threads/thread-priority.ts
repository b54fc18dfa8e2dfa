import { getPriority, setPriority } from 'node:os';

/** On a busy core, a thread gets three times as much as one that is nicer by five. */
const NICER = 5;
const NICEST = 19;

/**
 * Lets the service's own threads run before the calling one, which works on what sites send: where
 * all cores are busy, answers and the database do not wait for pages. Linux only; elsewhere a
 * priority belongs to the whole process. A thread that one of these starts yields to that one, too.
 */
export function yieldToService(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, Math.min(NICEST, getPriority(0) + NICER));
  } catch {
    // A sandbox may forbid it; the thread works as well without it.
  }
}
