import { expect, test } from 'vitest';
import { type IdleCause, idleSlots } from '../../support/chaos/slot-usage.ts';

const LIVE = new Set([1, 2]);
const DEAD = 9;

function causes(
  lead: number | undefined,
  helpers: readonly { readonly pid: number; readonly slots: number; readonly heldSlots: number }[],
  unused: number,
): Partial<Record<IdleCause, number>> {
  const found = idleSlots({ lead, helpers }, 100, unused, LIVE);
  return Object.fromEntries([...found].filter(([, slots]) => slots > 0));
}

test('unused slots are put down to who holds them, and to each of them once', () => {
  const given = { pid: 2, slots: 50, heldSlots: 50 };
  // What a process that runs does not use is its own.
  expect(causes(1, [given], 30)).toEqual({ idle: 30 });
  // A helper that was killed, and a lead that was.
  expect(causes(1, [{ ...given, pid: DEAD }], 60)).toEqual({ 'ended process': 50, idle: 10 });
  expect(causes(DEAD, [given], 60)).toEqual({ 'ended process': 50, idle: 10 });
  expect(causes(DEAD, [{ ...given, pid: DEAD }], 100)).toEqual({ 'ended process': 100 });
  // Slots in use are nobody's fault, whichever process holds the others.
  expect(causes(1, [{ ...given, pid: DEAD }], 20)).toEqual({ 'ended process': 20 });
  expect(causes(undefined, [given], 70)).toEqual({ 'no lead': 50, idle: 20 });
  expect(causes(1, [{ ...given, slots: 20 }], 40)).toEqual({ 'being given back': 30, idle: 10 });
  expect(causes(1, [], 0)).toEqual({});
});
