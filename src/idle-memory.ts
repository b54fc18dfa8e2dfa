import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';

const MIB = 1024 * 1024;
/** Length of the time over which a thread must have been idle, in milliseconds. */
const IDLE_MS = 60_000;
/** Most of that time that an idle thread works; polls of the database take less. */
const MAX_UTILIZATION = 0.05;
/** Least that V8 must hold unused. */
const MIN_UNUSED_BYTES = 16 * MIB;
/** A larger heap is left alone, because its collection would hold up calls that come just then. */
const MAX_USED_BYTES = 128 * MIB;

/**
 * Returns memory that V8 holds unused to the system when the calling thread has become idle. V8 would
 * keep the young generation as large as the last load has made it (decision 050). Does nothing without
 * `--expose-gc`.
 */
export function freeWhenIdle(idleMs = IDLE_MS): Disposable {
  const { gc } = globalThis;
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization > MAX_UTILIZATION) return;
    const { total_heap_size: held, used_heap_size: used } = getHeapStatistics();
    if (held - used < MIN_UNUSED_BYTES || used > MAX_USED_BYTES) return;
    gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  }, idleMs);
  timer.unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
