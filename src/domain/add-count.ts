/** Adds to the number that is counted for a key. A key whose number is 0 again leaves the map. */
export function addCount(counts: Map<string, number>, key: string, added: number): void {
  const sum = (counts.get(key) ?? 0) + added;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}
