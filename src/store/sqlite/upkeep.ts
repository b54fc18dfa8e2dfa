import { setTimeout as wait } from 'node:timers/promises';
import type { Store } from '../store.ts';
import type { SqliteDatabase } from './thread/database.ts';
import { createYielding } from './yielding.ts';

/** How long one `maintain` continues while there is more to do. */
const GOES_ON_MS = 10_000;

/** Work on many rows, in small calls, so that other calls run in between. */
export interface Upkeep {
  readonly maintain: Store['maintain'];
  /** The same operation, followed by a sweep in the background of the rows that it leaves. */
  sweepsAfter<Args extends unknown[], Value>(
    operation: (...args: Args) => Promise<Value>,
  ): (...args: Args) => Promise<Value>;
}

/** Creates the upkeep of a database. */
export function createUpkeep(database: Pick<SqliteDatabase, 'call' | 'begun'>): Upkeep {
  let sweeping: Promise<void> | undefined;
  let asked = false;
  const yielding = createYielding(database);

  /** Makes a step, and pauses when another call had to wait for one. */
  async function step(operation: string, args: readonly unknown[]): Promise<unknown> {
    const { value, pauseMs } = await yielding.step(() => database.call(operation, args));
    if (pauseMs > 0) await wait(pauseMs);
    return value;
  }

  async function sweepAll(goesOn: () => boolean): Promise<void> {
    do {
      asked = false;
      while (goesOn() && (await step('sweep', [])) === true) {
        // All work is in the condition.
      }
    } while (asked && goesOn());
  }

  function sweepInBackground(): void {
    asked = true;
    sweeping ??= sweepAll(() => true)
      // The database is closing or cannot write; `maintain` continues the sweep.
      .catch(() => undefined)
      .finally(() => {
        sweeping = undefined;
      });
  }

  return {
    async maintain(now, signal) {
      const until = performance.now() + GOES_ON_MS;
      const goesOn = (): boolean => signal?.aborted !== true && performance.now() < until;
      while ((await step('maintain', [now])) === true && goesOn()) {
        // All work is in the condition.
      }
      if (sweeping === undefined) await sweepAll(goesOn);
    },
    sweepsAfter:
      (operation) =>
      async (...args) => {
        const value = await operation(...args);
        sweepInBackground();
        return value;
      },
  };
}
