import type { Lease } from './queue-store.ts';

/**
 * The part of a crawler that a helper dispatches: a process other than the holder of the crawler's
 * lease, its lead. Whose jobs are whose is decided by a digit, see `domain/share-digits.ts`.
 */
export interface Share {
  /** Grows with each share of the crawler. */
  readonly shareId: number;
  readonly processId: string;
  /** For how many crawls at once the helper has room. */
  readonly room: number;
  /** How many crawls at once the lead lets it have, of jobs with these digits. */
  readonly slots: number;
  readonly digits: string;
  /**
   * What the helper may still use: at least `slots` and `digits`, and more until it has told that it
   * keeps to a smaller share.
   */
  readonly heldSlots: number;
  readonly heldDigits: string;
  /** Whether the lead will give it further digits, once their hosts are free. */
  readonly awaits: boolean;
}

/** How a crawler is shared. */
export interface Sharing {
  /** Changes with every change of the shares. */
  readonly revision: number;
  /** Whether the lead looks for another helper. */
  readonly wantsHelp: boolean;
  readonly shares: readonly Share[];
}

/** Crawlers that want another process. */
export interface WantedProcesses {
  /** Their lead wants help. */
  readonly helper: readonly string[];
  /** They have had work due for a moment, and nobody leads them: their lead may have died. */
  readonly lead: readonly string[];
  /** As `lead`, of pace groups that the process which asks leads: no other one can lead them. */
  readonly grouped: readonly string[];
}

/**
 * Shares of crawlers, for processes that share a database. The lead alone gives slots and digits; a
 * helper takes a share without any and gives back what the lead has taken from it. Shares are
 * renewed by `QueueStore.visit` and given back by `QueueStore.release`; what a helper was doing
 * whose share lapsed becomes due again when the lead next looks at the crawler.
 */
export interface ShareStore {
  /**
   * Finds up to `limit` crawlers of each kind. It takes one of each account in turn, in an order
   * that differs from call to call, so that no account keeps others from help. Crawlers whose pace
   * group another process than `processId` leads are left to that one.
   */
  wanted(limit: number, processId: string, now: Date): Promise<WantedProcesses>;
  /**
   * Takes a share without slots. Undefined if the crawler wants no help any more, if the process has
   * one that has not ended, or if others changed the shares at the same moment.
   */
  join(
    crawlerId: string,
    processId: string,
    room: number,
    ttlMs: number,
    now: Date,
  ): Promise<Lease | undefined>;
  /**
   * Writes what the lead gives to each share, and whether it wants help. Returns the new revision;
   * undefined, and nothing is changed, if the shares are not those of `revision` any more or the
   * lease is not current.
   */
  give(lease: Lease, sharing: Sharing, now: Date): Promise<number | undefined>;
  /**
   * Ends the leases and shares of a process that has ended, as if they had lapsed. Returns the
   * crawlers that it led, and the number of its shares.
   */
  endOf(
    processId: string,
    now: Date,
  ): Promise<{ readonly crawlerIds: readonly string[]; readonly shares: number }>;
  /** Writes that a helper uses no more than this. Changes nothing once the lead gave it more. */
  keepTo(lease: Lease, kept: KeptShare, now: Date): Promise<void>;
}

/** What a helper keeps to: `digits` as the lead gave them, and what it still holds. */
export type KeptShare = Pick<Share, 'slots' | 'digits' | 'heldDigits' | 'room'>;

/** Whether a lease is a helper's: the right to dispatch a share of the crawler. */
export function isShare({ epoch }: Pick<Lease, 'epoch'>): boolean {
  return epoch < 0;
}
