import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';

/** What a crawl holds of the pools: its slot, and memory for its page. */
export interface CrawlGrants {
  readonly slot: Grant;
  readonly base: Grant;
}

/** A lane's place in the lines for slots and for memory. */
export interface CrawlRoom {
  /** Whether others use what it needs. */
  readonly waits: boolean;
  /** Room for one crawl. Without it, it waits; `onRoom` is called when it should ask again. */
  take(claimant: Claimant, bytes: number): CrawlGrants | undefined;
  /** Leaves the lines, and gives back what it keeps. */
  cancel(): void;
}

/**
 * Makes one that waits for nothing. It keeps a slot while it waits for memory. Two lanes that gave back
 * what they have, to wait for what the other has, would pass both on for ever.
 */
export function createCrawlRoom(deps: {
  readonly slots: FairPool;
  readonly memory: FairPool;
  readonly onRoom: () => void;
}): CrawlRoom {
  const { slots, memory } = deps;
  const slotLine = createWaitingGrant(slots, granted);
  const memoryLine = createWaitingGrant(memory, granted);
  let keptSlot: Grant | undefined;
  /** How much memory it waits for. */
  let askedBytes = 0;

  /** What `onRoom` does not take is for others. */
  function granted(): void {
    deps.onRoom();
    slotLine.take()?.release();
    memoryLine.take()?.release();
    if (!memoryLine.waits) releaseSlot();
  }

  function releaseSlot(): void {
    keptSlot?.release();
    keptSlot = undefined;
  }

  function takeMemory(claimant: Claimant, bytes: number): Grant | undefined {
    const grant = memoryLine.take();
    if (grant === undefined || bytes > askedBytes) {
      grant?.release();
      return memory.tryAcquire(claimant, bytes);
    }
    grant.shrink(bytes);
    return grant;
  }

  return {
    get waits() {
      return slotLine.waits || memoryLine.waits;
    },
    take(claimant, bytes) {
      const slot = keptSlot ?? slotLine.take() ?? slots.tryAcquire(claimant, 1);
      keptSlot = undefined;
      if (slot === undefined) {
        slotLine.wait(claimant, 1);
        return undefined;
      }
      const base = takeMemory(claimant, bytes);
      if (base !== undefined) return { slot, base };
      keptSlot = slot;
      if (!memoryLine.waits) askedBytes = bytes;
      memoryLine.wait(claimant, bytes);
      return undefined;
    },
    cancel() {
      slotLine.cancel();
      memoryLine.cancel();
      releaseSlot();
    },
  };
}
