import { setTimeout as wait } from 'node:timers/promises';
import { CdpError } from './cdp-connection.ts';
import { evaluate } from './page-reader.ts';
import type { Visit } from './page-steps.ts';

const STEP_MS = 250;
/**
 * Steps at the end of a page after which scrolling ends, if it has not grown and requests nothing.
 */
const IDLE_STEPS = 6;

/** What scrolls under a point: how far it is scrolled and how far it can be. */
const POSITION = (x: number, y: number): string => `(() => {
  const all = [document.scrollingElement];
  for (let each = document.elementFromPoint(${x}, ${y}); each; each = each.parentNode ?? each.host) {
    if (each.scrollHeight > each.clientHeight) all.push(each);
  }
  return all.filter(Boolean).map((each) => Math.round(each.scrollTop) + '/' + each.scrollHeight).join();
})()`;

/**
 * Turns the mouse wheel over the middle of the window for `ms`, which scrolls the page or an
 * element in it. Ends earlier at the end of a page that does not grow any more.
 */
export async function scrollDown(
  { page, quiet, device: { screen } }: Pick<Visit, 'page' | 'quiet' | 'device'>,
  ms: number,
): Promise<void> {
  const until = performance.now() + ms;
  const at = { x: screen.width / 2, y: screen.height / 2 };
  let before: unknown;
  let idleSteps = 0;
  while (idleSteps < IDLE_STEPS) {
    const left = until - performance.now();
    if (left <= 0) return;
    const next = wait(Math.min(STEP_MS, left));
    const position = await turnWheel().catch((error: unknown) => {
      // The page is busy and scrolls later, or has navigated.
      if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
      return undefined;
    });
    idleSteps = position !== undefined && position === before && !quiet.isBusy ? idleSteps + 1 : 0;
    before = position;
    await next;
  }

  async function turnWheel(): Promise<unknown> {
    const left = Math.max(until - performance.now(), 1);
    const wheel = { type: 'mouseWheel', deltaX: 0, deltaY: screen.height } as const;
    await page.send('Input.dispatchMouseEvent', { ...at, ...wheel }, left);
    return evaluate(page, POSITION(at.x, at.y), left);
  }
}
