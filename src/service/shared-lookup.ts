/**
 * Look-ups that read after their caller asked, never before. Callers that ask for a key while it is
 * being read share the next reading. So at most one reading of a key is in progress and one waits,
 * however many callers there are.
 */
export function createSharedLookup<Value>(
  read: (key: string) => Promise<Value>,
): (key: string) => Promise<Value> {
  interface Reading {
    readonly current: Promise<Value>;
    next?: Promise<Value>;
  }
  const readings = new Map<string, Reading>();

  function start(key: string): Promise<Value> {
    const reading: Reading = { current: read(key) };
    readings.set(key, reading);
    const end = (): void => {
      if (reading.next === undefined) readings.delete(key);
    };
    reading.current.then(end, end);
    return reading.current;
  }

  return (key) => {
    const reading = readings.get(key);
    if (reading === undefined) return start(key);
    const again = (): Promise<Value> => start(key);
    reading.next ??= reading.current.then(again, again);
    return reading.next;
  };
}
