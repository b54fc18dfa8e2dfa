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
  /** Whether a page whose process was killed just now was ended here. One end explains one page. */
  hasEndedOne(): boolean;
  /** As it was last looked at, at most half a second ago; zeros except on Linux. */
  readonly bytes: MemoryByKind;
  stop(): void;
}

const INTERVAL_MS = 500;
/** Chromium tells the end of a page within this time after its process was ended, also when it is busy. */
const TOLD_MS = 30_000;

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
  /** When processes of pages were ended whose pages are not known yet. */
  let endedAt: readonly number[] = [];
  let bytes = sumByKind([]);
  const judgeDrawing = createDrawingWatch();
  const findFlood = createFloodWatch(deps.ping);

  function end({ pid, kind }: Pick<BrowserProcess, 'pid' | 'kind'>): void {
    if (kind === 'renderer') endedAt = [...endedAt, performance.now()];
    kill(pid);
  }

  async function check(): Promise<void> {
    const processes = await browserProcesses(deps.pid);
    bytes = sumByKind(processes);
    for (const each of tooLarge(processes, maxProcessBytes, deps.openPages())) {
      const { kind } = each;
      const fields = { kind, bytes: each.bytes, limit: maxProcessBytes };
      logger.warn(fields, 'a process of Chromium took too much memory');
      if (kind !== 'renderer') deps.onSharedProcessFailed();
      // The browser process ends once its last page is closed.
      if (kind === 'browser') continue;
      end(each);
    }
    const flooding = findFlood(processes);
    if (flooding !== undefined) {
      logger.warn({}, 'a page floods Chromium with messages; its process is ended');
      end({ pid: flooding, kind: 'renderer' });
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
    hasEndedOne() {
      const latest = performance.now() - TOLD_MS;
      const [first, ...others] = endedAt.filter((at) => at > latest);
      endedAt = others;
      return first !== undefined;
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
