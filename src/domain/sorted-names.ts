/** The index of the first name behind another one, in a list in ascending order. */
export function indexBehind(sorted: readonly string[], name: string): number {
  let low = 0;
  for (let high = sorted.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') <= name) low = middle + 1;
    else high = middle;
  }
  return low;
}
