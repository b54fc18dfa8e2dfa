import { setTimeout as sleep } from 'node:timers/promises';

/** Too short a rest to be worth a timer. */
const SHORT_MS = 5;

interface Reading<Value> {
  /** Resolves when the next reading may begin. */
  readonly rested: Promise<void>;
  /** Undefined while nobody waits for it. */
  next: Promise<Value> | undefined;
}

/**
 * Look-ups that read after their caller asked, never before, so that each sees all that was written
 * by then. Callers that ask for a key while it is being read share the next reading. So at most one
 * reading of a key is in progress and one waits, however many callers there are. After a reading, the
 * next of the same key waits `restFactor` times as long as it took.
 */
export function createSharedLookup<Value>(
  read: (key: string) => Promise<Value>,
  { restFactor = 0 }: { readonly restFactor?: number } = {},
): (key: string) => Promise<Value> {
  const readings = new Map<string, Reading<Value>>();

  function start(key: string): Promise<Value> {
    const startedAt = performance.now();
    const value = read(key);
    const rest = () => restFor((performance.now() - startedAt) * restFactor);
    const reading: Reading<Value> = { rested: value.then(rest, rest), next: undefined };
    readings.set(key, reading);
    void reading.rested.then(() => {
      if (reading.next === undefined) readings.delete(key);
    });
    return value;
  }

  return (key) => {
    const reading = readings.get(key);
    if (reading === undefined) return start(key);
    return (reading.next ??= reading.rested.then(() => start(key)));
  };
}

function restFor(ms: number): Promise<void> | undefined {
  return ms < SHORT_MS ? undefined : sleep(ms, undefined, { ref: false });
}
