import type { BrowserProcess, DrawingTimes } from './process-watch.ts';

/** How the process that draws for all pages is doing. */
export type DrawingState = 'works' | 'hangs' | 'was replaced' | 'is gone';

/** Longest time of a single drawing; until it is done, no page gets a picture or WebGL. */
const HANG_MS = 5_000;
/** What it has to have worked by then: on a busy machine, little is drawn in five seconds. */
const HANG_CPU_SECONDS = 2.5;
/** What is idle takes less than this from one look to the next. */
const IDLE_CPU_SECONDS = 0.02;

/** Chromium starts another at once, unless it has given up after several crashes. */
const GONE_LOOKS = 3;

interface Look extends DrawingTimes {
  readonly pid: number;
  /** On the scale of `performance.now()`. */
  readonly at: number;
}

/**
 * Makes a judge of the process that draws, to be called every half second, also without such a
 * process. Chromium ends no drawing of software, and the endless one of a page outlives the page.
 */
export function createDrawingWatch(): (
  process: Pick<BrowserProcess, 'pid' | 'drawing'> | undefined,
  now: number,
) => DrawingState {
  let last: Look | undefined;
  /** Since then it has been busy without waiting for anything. */
  let since: Look | undefined;
  /** Looks in a row that found none. */
  let missing = 0;

  return (process, now) => {
    if (process?.drawing === undefined) {
      missing += 1;
      return last !== undefined && missing >= GONE_LOOKS ? 'is gone' : 'works';
    }
    missing = 0;
    const { pid, drawing } = process;
    const before = last;
    const look = { pid, ...drawing, at: now };
    last = look;
    if (before === undefined || since === undefined || before.pid !== pid) {
      since = look;
      return before === undefined ? 'works' : 'was replaced';
    }
    if (before.waits !== look.waits || cpuBetween(before, look) < IDLE_CPU_SECONDS) {
      since = look;
      return 'works';
    }
    const hangs = now - since.at >= HANG_MS && cpuBetween(since, look) >= HANG_CPU_SECONDS;
    return hangs ? 'hangs' : 'works';
  };
}

function cpuBetween(from: Look, to: Look): number {
  return to.cpuSeconds - from.cpuSeconds;
}
