/** Fewer than this are written by one command: a second one would cost more than it saves. */
const LEAST_ITEMS = 64;

/**
 * Writes many items with two commands at once: a server works on each command with one core.
 * Resolves with the results of the commands. Rejects when both have ended and one has rejected, so
 * that whoever repeats the writes meets none that is still under way.
 */
export async function inHalves<Item, Result>(
  items: readonly Item[],
  write: (half: readonly Item[]) => Promise<Result>,
): Promise<readonly Result[]> {
  if (items.length === 0) return [];
  if (items.length < LEAST_ITEMS) return [await write(items)];
  const middle = Math.ceil(items.length / 2);
  return bothDone(write(items.slice(0, middle)), write(items.slice(middle)));
}

/** The results of both. Rejects when both have ended and one has rejected. */
export async function bothDone<One, Other>(
  one: Promise<One>,
  other: Promise<Other>,
): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}
