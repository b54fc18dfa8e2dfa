import { DIGITS } from '../domain/share-digits.ts';
import type { Share } from '../store/store.ts';

/** The most processes that can work on one crawler: one for each digit. */
export const MAX_PROCESSES = 16;

/** What the lead of a crawler keeps, and what it gives to each helper. */
export interface SharePlan {
  /** Up to which the lead starts crawls; more of them may be in flight. */
  readonly slots: number;
  readonly digits: string;
  readonly shares: readonly Share[];
}

/**
 * Divides a crawler's slots and digits equally among its lead and its helpers; one that has room for
 * less gets less. What a process still uses is given to no other. A helper is first told to
 * do with less (`slots` and `digits` become smaller than what it holds), and once it does, the next
 * plan gives the rest to others. So the crawls of all together never exceed `concurrency`, at any
 * moment and whatever gets lost.
 */
export function planShares({
  concurrency,
  lead,
  shares,
  digits: all = DIGITS.rid,
  withdraws = false,
}: {
  /** The digits that are divided; those of rids if absent. */
  readonly digits?: string;
  /** Whether helpers have to give back all that they have. */
  readonly withdraws?: boolean;
  readonly concurrency: number;
  readonly lead: { readonly room: number; readonly inFlight: number };
  readonly shares: readonly Share[];
}): SharePlan {
  const rooms = shares.map(({ room }) => (withdraws ? 0 : room));
  const wanted = divide(concurrency, [lead.room, ...rooms]);
  const wantedDigits = withdraws ? [all.length, ...rooms] : divideDigits(wanted);
  const [leadSlots = 0] = wanted;
  const [leadDigits = 0] = wantedDigits;
  let spareSlots =
    concurrency -
    sum(shares.map(({ heldSlots }) => heldSlots)) -
    Math.max(lead.inFlight, leadSlots);
  const heldDigits = new Set(shares.flatMap((each) => each.heldDigits.split('')));
  const freeDigits = all.split('').filter((digit) => !heldDigits.has(digit));
  const planned = shares.map((share, index): Share => {
    const slots = wanted[index + 1] ?? 0;
    const digits = wantedDigits[index + 1] ?? 0;
    const more = Math.max(0, Math.min(spareSlots, slots - share.heldSlots));
    spareSlots -= more;
    const given = Math.max(
      0,
      Math.min(freeDigits.length - leadDigits, digits - share.heldDigits.length),
    );
    const added = given > 0 ? freeDigits.splice(-given).join('') : '';
    return {
      ...share,
      slots: Math.min(share.heldSlots + more, slots),
      heldSlots: share.heldSlots + more,
      digits: (share.heldDigits + added).slice(0, digits),
      heldDigits: share.heldDigits + added,
      awaits: false,
    };
  });
  const left = concurrency - sum(planned.map(({ heldSlots }) => heldSlots));
  const lacking = planned.map(({ heldSlots }, index) => (wanted[index + 1] ?? 0) - heldSlots);
  // What helpers lack the lead does not use again, so that the next plan can give it to them.
  const unlent = left - sum(lacking.map((slots) => Math.max(0, slots)));
  return {
    slots: Math.max(0, Math.min(lead.room, left, Math.max(leadSlots, unlent))),
    digits: freeDigits.join(''),
    shares: planned,
  };
}

/** Divides `total` equally, with at most so much for each as it has room for. */
function divide(total: number, rooms: readonly number[]): number[] {
  const parts = rooms.map(() => 0);
  let left = total;
  for (;;) {
    const open = parts.flatMap((part, index) => (part < (rooms[index] ?? 0) ? [index] : []));
    if (left === 0 || open.length === 0) return parts;
    const each = Math.max(1, Math.floor(left / open.length));
    for (const index of open) {
      const part = parts[index] ?? 0;
      const more = Math.min(each, left, (rooms[index] ?? 0) - part);
      parts[index] = part + more;
      left -= more;
    }
  }
}

/** The number of digits for each: in proportion to its slots, but one at least. */
function divideDigits(slots: readonly number[]): number[] {
  const all = Math.max(1, sum(slots));
  const digits = slots.map((part) => Math.max(1, Math.floor((MAX_PROCESSES * part) / all)));
  // The lead takes what is left, and gives what is missing.
  const others = sum(digits.slice(1));
  return [Math.max(1, MAX_PROCESSES - others), ...digits.slice(1)];
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
