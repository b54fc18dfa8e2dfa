const BARS = '▁▂▃▄▅▆▇█';

/** Numbers as bars of eight heights, the highest for the largest. */
export function sparkline(numbers: readonly number[]): string {
  const most = Math.max(...numbers, 1);
  return numbers
    .map((each) => BARS[Math.min(Math.floor((each / most) * BARS.length), BARS.length - 1)])
    .join('');
}
