/**
 * Look-ups that are as fresh as their callers: the answer was read after its caller asked. Those that ask for one key while it is
 * being read share the next reading, so however many they are, one after the other is under way.
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
