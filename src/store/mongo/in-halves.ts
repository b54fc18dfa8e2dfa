/** Fewer than this are written by one command: a second one would cost more than it saves. */
const LEAST_ITEMS = 64;

/**
 * Writes many items with two commands at once: a server works on each command with one core.
 * Resolves with the results of the commands, and rejects as {@link allDone} does.
 */
export function inHalves<Item, Result>(
  items: readonly Item[],
  write: (half: readonly Item[]) => Promise<Result>,
): Promise<readonly Result[]> {
  return allDone(halves(items).map(write));
}

/** The items, in two parts if they are many, in none if there are none. */
function halves<Item>(items: readonly Item[]): (readonly Item[])[] {
  if (items.length === 0) return [];
  if (items.length < LEAST_ITEMS) return [items];
  const middle = Math.ceil(items.length / 2);
  return [items.slice(0, middle), items.slice(middle)];
}

/**
 * The results of all. Rejects when all have ended and one has rejected, so that whoever repeats the
 * writes meets none that is still under way.
 */
async function allDone<Result>(promises: readonly Promise<Result>[]): Promise<Result[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** The results of both; see {@link allDone}. */
export async function bothDone<One, Other>(
  one: Promise<One>,
  other: Promise<Other>,
): Promise<readonly [One, Other]> {
  await Promise.allSettled([one, other]);
  return [await one, await other];
}
