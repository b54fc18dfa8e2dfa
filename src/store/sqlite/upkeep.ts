import type { Store } from '../store.ts';
import type { SqliteDatabase } from './thread/database.ts';

/** How long one `maintain` goes on while there is more to do. */
const GOES_ON_MS = 10_000;

/** Work on many rows, in calls of few: what else is called comes between. */
export interface Upkeep {
  readonly maintain: Store['maintain'];
  /** The same operation, after which what it left is swept up in the background. */
  sweepsAfter<Args extends unknown[], Value>(
    operation: (...args: Args) => Promise<Value>,
  ): (...args: Args) => Promise<Value>;
}

/** Makes the upkeep of a database. */
export function createUpkeep(database: Pick<SqliteDatabase, 'call'>): Upkeep {
  let sweeping: Promise<void> | undefined;
  let asked = false;

  async function sweepAll(goesOn: () => boolean): Promise<void> {
    do {
      asked = false;
      while (goesOn() && (await database.call('sweep', [])) === true) {
        // The next call.
      }
    } while (asked && goesOn());
  }

  function sweepInBackground(): void {
    asked = true;
    sweeping ??= sweepAll(() => true)
      // The database is closing, or cannot write: `maintain` goes on with it.
      .catch(() => undefined)
      .finally(() => {
        sweeping = undefined;
      });
  }

  return {
    async maintain(now, signal) {
      const until = performance.now() + GOES_ON_MS;
      const goesOn = (): boolean => signal?.aborted !== true && performance.now() < until;
      let expired = 0;
      for (;;) {
        const step = (await database.call('maintain', [now])) as { expired: number; more: boolean };
        expired += step.expired;
        if (!step.more || !goesOn()) break;
      }
      if (sweeping === undefined) await sweepAll(goesOn);
      return { expired, repaired: 0 };
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
