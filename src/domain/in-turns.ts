import { setImmediate as nextTurn } from 'node:timers/promises';

/**
 * Work in steps, each of which takes about a millisecond at most. Between two of them a thread does
 * what else it has to do.
 */
export type Steps<Result> = Generator<undefined, Result, undefined>;

/**
 * Takes the steps, one in each turn of the event loop. `run` takes a step; default: calls it.
 */
export async function inTurns<Result>(
  steps: Steps<Result>,
  run: (step: () => IteratorResult<undefined, Result>) => IteratorResult<undefined, Result> = (
    step,
  ) => step(),
): Promise<Result> {
  for (;;) {
    const { done, value } = run(() => steps.next());
    if (done === true) return value;
    await nextTurn();
  }
}
