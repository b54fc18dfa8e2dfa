import type { SqliteDatabase } from './thread/database.ts';

/** Makes the steps of long work so that other calls are answered in between. */
export interface Yielding {
  /** Whether another call had to wait for a step, within the last {@link FOR_MS}. */
  readonly isAsked: boolean;
  /** Makes a step of one call. Resolves to its value and the pause that must follow, in milliseconds. */
  step<Value>(call: () => Promise<Value>): Promise<{ value: Value; pauseMs: number }>;
}

const FOR_MS = 200;
/** A pause is as many times as long as its step took, so steps have a third of the database's time. */
const PAUSE = 2;
const MOST_MS = 50;

/** Makes the yielding of one kind of work. `now` returns milliseconds. */
export function createYielding(
  database: Pick<SqliteDatabase, 'begun'>,
  now: () => number = () => performance.now(),
): Yielding {
  let askedUntil = Number.NEGATIVE_INFINITY;
  return {
    get isAsked() {
      return now() < askedUntil;
    },
    async step(call) {
      const startedAt = now();
      const before = database.begun;
      const value = await call();
      const endedAt = now();
      if (database.begun > before + 1) askedUntil = endedAt + FOR_MS;
      const pauseMs = Math.min(PAUSE * (endedAt - startedAt), MOST_MS);
      return { value, pauseMs: endedAt < askedUntil ? pauseMs : 0 };
    },
  };
}
