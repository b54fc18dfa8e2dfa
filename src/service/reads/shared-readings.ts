import { setTimeout as sleep } from 'node:timers/promises';

/** After a reading, the next of the same key waits this multiple of the time that it took. */
const REST = 3;

/** Too short a rest to be worth a timer. */
const SHORT_MS = 5;

interface Underway<Value> {
  /** Resolves when the next reading may begin. */
  readonly rested: Promise<void>;
  /** Undefined while nobody waits for it. */
  next: Promise<Value> | undefined;
}

/**
 * Reads one key at most once at a time, and a quarter of the time at most. Calls that come during a
 * reading share the next one, which begins after they came, so that each sees all that was written
 * before.
 */
export function createSharedReadings<Value>(
  read: (key: string) => Promise<Value>,
): (key: string) => Promise<Value> {
  const underway = new Map<string, Underway<Value>>();

  function begin(key: string): Promise<Value> {
    const startedAt = performance.now();
    const value = read(key);
    const rested = value
      // Its callers are told.
      .catch(() => undefined)
      .then(() => rest((performance.now() - startedAt) * REST));
    const own: Underway<Value> = { rested, next: undefined };
    underway.set(key, own);
    void rested.then(() => {
      if (own.next === undefined) underway.delete(key);
    });
    return value;
  }

  return (key) => {
    const before = underway.get(key);
    if (before === undefined) return begin(key);
    return (before.next ??= before.rested.then(() => begin(key)));
  };
}

async function rest(ms: number): Promise<void> {
  if (ms >= SHORT_MS) await sleep(ms, undefined, { ref: false });
}
