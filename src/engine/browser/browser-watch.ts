import type { Logger } from '../../domain/logger.ts';
import { oneAtATime } from '../../domain/one-at-a-time.ts';
import { createDrawingWatch } from './drawing-watch.ts';
import { createFloodWatch } from './flood-watch.ts';
import { type BrowserProcess, browserProcesses, type ProcessKind } from './process-watch.ts';

/** Bytes of memory by kind of process. */
export type MemoryByKind = Readonly<Record<ProcessKind, number>>;

/**
 * Ends the processes of one browser that take too much memory or flood it with messages, and the
 * one that draws when it hangs.
 */
export interface BrowserWatch {
  /** When a page's process was last ended, on the scale of `performance.now()`; -Infinity for never. */
  readonly killedAt: number;
  /** As it was last looked at, at most half a second ago; zeros except on Linux. */
  readonly bytes: MemoryByKind;
  stop(): void;
}

const INTERVAL_MS = 500;

/** Starts the watch. Its timer does not keep the process alive. */
export function watchBrowser(deps: {
  /** Of the browser's first process. */
  readonly pid: number;
  readonly maxProcessBytes: number;
  /** Pages that are open now. */
  readonly openPages: () => number;
  /** A command that costs the browser nothing; its reply, or its failure. */
  readonly ping: () => Promise<unknown>;
  readonly logger: Logger;
  /** Called when a process that serves all pages takes too much, hangs or has ended. */
  readonly onSharedProcessFailed: () => void;
}): BrowserWatch {
  const { logger, maxProcessBytes } = deps;
  let killedAt = Number.NEGATIVE_INFINITY;
  let bytes = sumByKind([]);
  const judgeDrawing = createDrawingWatch();
  const findFlood = createFloodWatch(deps.ping);

  async function check(): Promise<void> {
    const processes = await browserProcesses(deps.pid);
    bytes = sumByKind(processes);
    for (const each of tooLarge(processes, maxProcessBytes, deps.openPages())) {
      const { pid, kind } = each;
      const fields = { kind, bytes: each.bytes, limit: maxProcessBytes };
      logger.warn(fields, 'a process of Chromium took too much memory');
      if (kind !== 'renderer') deps.onSharedProcessFailed();
      // The browser process ends once its last page is closed.
      if (kind === 'browser') continue;
      killedAt = performance.now();
      kill(pid);
    }
    const flooding = findFlood(processes);
    if (flooding !== undefined) {
      logger.warn({}, 'a page keeps Chromium from answering; it is ended');
      killedAt = performance.now();
      kill(flooding);
    }
    const drawing = processes.find((each) => each.drawing !== undefined);
    const state = judgeDrawing(drawing, performance.now());
    if (state !== 'works') deps.onSharedProcessFailed();
    if (state !== 'hangs' || drawing === undefined) return;
    logger.warn({}, 'a page has Chromium draw without end; what draws is started anew');
    kill(drawing.pid);
  }

  const checkSafely = oneAtATime(() =>
    check().catch((error: unknown) => logger.warn({ err: error }, 'no memory sizes of Chromium')),
  );
  const timer = setInterval(() => void checkSafely(), INTERVAL_MS).unref();

  return {
    get killedAt() {
      return killedAt;
    },
    get bytes() {
      return bytes;
    },
    stop: () => clearInterval(timer),
  };
}

/** Every process above the limit, and the largest renderer when all processes together take too much. */
function tooLarge(
  processes: readonly BrowserProcess[],
  maxProcessBytes: number,
  openPages: number,
): readonly BrowserProcess[] {
  const total = processes.reduce((sum, { bytes }) => sum + bytes, 0);
  const renderers = processes.filter(({ kind }) => kind === 'renderer');
  const largest = renderers.toSorted((left, right) => right.bytes - left.bytes)[0];
  // One page may have several processes, each within the limit.
  const areTooMany = total > maxProcessBytes * (openPages + 2);
  return processes.filter(
    (each) => each.bytes > maxProcessBytes || (areTooMany && each === largest),
  );
}

function sumByKind(processes: readonly BrowserProcess[]): MemoryByKind {
  const sums = { browser: 0, renderer: 0, other: 0 };
  for (const { kind, bytes } of processes) sums[kind] += bytes;
  return sums;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has just ended.
  }
}
