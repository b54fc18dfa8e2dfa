import { quickly } from './client-options.ts';
import type { Collections } from './collections.ts';
import type { BatchId } from './tombstones.ts';

/**
 * Removes tombstones that are counted, in the background and many at once. Until then they change
 * nothing; those that a crash leaves are found by `maintain`.
 */
export interface TombstoneRemovals {
  add(batch: BatchId, rids: readonly string[]): void;
  /** Removes all that were added. Never rejects: what fails is tried again later. */
  flush(): Promise<void>;
}

interface Counted {
  readonly rids: Set<string>;
  readonly batchNos: Set<number>;
}

/** How long tombstones are gathered, unless there are so many. */
const GATHER_MS = 2_000;
const MANY = 1_000;
/** While the database is away no more are remembered. */
const MOST = 20_000;

/** Makes an empty one; its timer runs while it holds something. */
export function createTombstoneRemovals(collections: Collections): TombstoneRemovals {
  /** By process. */
  let gathered = new Map<string, Counted>();
  let count = 0;
  let timer: NodeJS.Timeout | undefined;

  function note(processId: string, batchNos: Iterable<number>, rids: Iterable<string>): void {
    const counted = gathered.get(processId) ?? { rids: new Set(), batchNos: new Set() };
    gathered.set(processId, counted);
    for (const batchNo of batchNos) counted.batchNos.add(batchNo);
    for (const rid of rids) counted.rids.add(rid);
    count = [...gathered.values()].reduce((sum, each) => sum + each.rids.size, 0);
    timer ??= setTimeout(() => void flush(), GATHER_MS).unref();
  }

  async function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const taken = gathered;
    gathered = new Map();
    count = 0;
    await Promise.all(
      [...taken].map(async ([by, { rids, batchNos }]) => {
        // A job ends once, so a tombstone of these that names one of the batches is in it.
        const filter = { _id: { $in: [...rids] }, state: 'ended', by, seq: { $in: [...batchNos] } };
        try {
          await collections.jobs.deleteMany(filter as object, quickly);
        } catch {
          if (count + rids.size <= MOST) note(by, batchNos, rids);
        }
      }),
    );
  }

  return {
    add({ processId, batchNo }, rids) {
      note(processId, [batchNo], rids);
      if (count >= MANY) void flush();
    },
    flush,
  };
}
