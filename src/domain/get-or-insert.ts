/** What {@link getOrInsert} needs of a map. */
interface Insertable<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): unknown;
}

/** The value of a key. If the map has none, that of `make` is inserted first. */
export function getOrInsert<Key, Value>(
  map: Insertable<Key, Value>,
  key: Key,
  make: () => NoInfer<Value>,
): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
