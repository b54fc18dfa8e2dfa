import type { Claimant, FairPool, Grant } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';

/** The memory for the pages that a crawler's next claim of deliveries brings. */
export interface ClaimMemory {
  /** Memory for a claim; if there is too little of it, waits for some and returns none. */
  take(claimant: Claimant): Grant | undefined;
  /** Gives back what a lane that claims nothing would keep from others. */
  stopWaiting(): void;
}

/** Most bytes of pages that one claim brings into memory. */
const MAX_CLAIM_BYTES = 4 * 1024 * 1024;
/** With less memory a claim would bring one page at a time. */
const MIN_CLAIM_BYTES = 256 * 1024;

/** Makes one that waits for nothing. `onRoom` is called when there is memory that it waited for. */
export function createClaimMemory(memory: FairPool, onRoom: () => void): ClaimMemory {
  const line = createWaitingGrant(memory, onRoom);
  return {
    take(claimant) {
      const kept = line.take();
      if (kept !== undefined) return kept;
      const bytes = Math.min(MAX_CLAIM_BYTES, memory.available(claimant));
      const room = bytes < MIN_CLAIM_BYTES ? undefined : memory.tryAcquire(claimant, bytes);
      if (room === undefined) line.wait(claimant, MIN_CLAIM_BYTES);
      return room;
    },
    stopWaiting: line.cancel,
  };
}
