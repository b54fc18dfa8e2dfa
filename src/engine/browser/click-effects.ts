import { CdpError } from './cdp-connection.ts';
import { evaluate } from './page-reader.ts';
import type { Visit } from './page-steps.ts';

/** Timers that a click starts are waited for when they are not longer than this. */
const TIMER_MS = 500;
/** A page that draws no frames is not waited for any longer. */
const FRAME_MS = 500;

// By the clock of the page, whose timers and frames are late on a busy machine: those that were due
// before run before these.
const PAUSE = `new Promise((resolve) => {
  setTimeout(() => {
    requestAnimationFrame(resolve);
    setTimeout(resolve, ${FRAME_MS});
  }, ${TIMER_MS});
})`;

/** Runs when the page has handled all that it has received so far. */
const TURN = 'new Promise((resolve) => setTimeout(resolve))';

/**
 * Waits for what a click has started, at most `ms`: timers and frames of the next half second, then
 * until no request was in flight for half a second. Documents may still be loading.
 */
export async function waitForEffects(
  { page, quiet }: Pick<Visit, 'page' | 'quiet'>,
  ms: number,
): Promise<void> {
  const until = performance.now() + ms;
  const leftMs = (): number => Math.max(until - performance.now(), 1);
  for (const script of [PAUSE, TURN]) {
    try {
      await evaluate(page, `${script}.then(() => true)`, leftMs());
    } catch (error) {
      // The page has navigated, or its scripts take all of the time.
      if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
    }
    await quiet.wait(leftMs());
  }
}
