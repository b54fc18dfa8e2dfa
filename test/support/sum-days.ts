/** The numbers of the days of a history, added up: a test that runs at midnight has two of them. */
export function sumDays(history: readonly object[]): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const day of history) {
    for (const [field, value] of Object.entries(day)) {
      if (typeof value === 'number') sums[field] = (sums[field] ?? 0) + value;
    }
  }
  return sums;
}
