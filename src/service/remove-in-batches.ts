/** What one call has removed; `hasMore` is true when time ran out. */
export interface Removal {
  readonly removed: number;
  readonly hasMore: boolean;
}

/** URLs that one write removes. */
const BATCH = 2_000;
/** How long one removal takes at most. */
const MAX_MS = 30_000;

/** Calls `remove`, which removes up to `limit` URLs and returns how many, until none is left or time runs out. */
export async function removeInBatches(
  remove: (limit: number) => Promise<number>,
): Promise<Removal> {
  const until = performance.now() + MAX_MS;
  for (let removed = 0; ; ) {
    const count = await remove(BATCH);
    removed += count;
    if (count < BATCH) return { removed, hasMore: false };
    if (performance.now() > until) return { removed, hasMore: true };
  }
}
