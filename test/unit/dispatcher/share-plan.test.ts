import { describe, expect, test } from 'vitest';
import { planShares, type SharePlan } from '../../../src/dispatcher/share-plan.ts';
import type { Share } from '../../../src/store/store.ts';
import { createNoise } from '../../support/noise.ts';
import { testSeed } from '../../support/seed.ts';

const DIGITS = '0123456789abcdef';

function share(shareId: number, overrides: Partial<Share> = {}): Share {
  const none = { slots: 0, digits: '', heldSlots: 0, heldDigits: '', awaits: false };
  return { shareId, processId: `p${shareId}`, room: 1_000, ...none, ...overrides };
}

/** What a helper has once it keeps to what the lead gives it. */
const settled = (each: Share): Share => ({
  ...each,
  heldSlots: each.slots,
  heldDigits: each.digits,
});

/** Plans until nothing changes, with a lead and helpers that do what they are told at once. */
function settle(concurrency: number, room: number, shares: readonly Share[]): SharePlan {
  let plan = planShares({ concurrency, lead: { room, inFlight: 0 }, shares });
  for (let n = 0; n < 5; n++) {
    plan = planShares({
      concurrency,
      lead: { room, inFlight: 0 },
      shares: plan.shares.map(settled),
    });
  }
  return plan;
}

const slotsOf = ({ slots, shares }: SharePlan): number[] => [
  slots,
  ...shares.map((each) => each.slots),
];

describe('shares of a crawler', () => {
  test.each([
    ['equal parts', 200, 1_000, [1_000, 1_000, 1_000], [50, 50, 50, 50]],
    ['the rest to the first', 10, 1_000, [1_000, 1_000], [4, 3, 3]],
    ['no more than there is room for', 8, 2, [2, 2, 2], [2, 2, 2, 2]],
    ['what others have no room for', 100, 10, [20, 1_000], [10, 20, 70]],
    ['less than all where nobody has room', 100, 10, [20], [10, 20]],
    ['nothing to one helper too many', 2, 1_000, [1_000, 1_000], [1, 1, 0]],
  ])('%s', (_name, concurrency, room, rooms, expected) => {
    const shares = rooms.map((each, index) => share(index + 1, { room: each }));
    const plan = settle(concurrency, room, shares);
    expect(slotsOf(plan)).toEqual(expected);
    const digits = [plan.digits, ...plan.shares.map((each) => each.digits)];
    expect(digits.join('').split('').toSorted().join('')).toBe(DIGITS);
  });

  test('a helper gets no more than what the lead has free, and the rest when crawls of the lead have ended', () => {
    const plan = planShares({
      concurrency: 100,
      lead: { room: 1_000, inFlight: 90 },
      shares: [share(1)],
    });
    expect(plan).toMatchObject({ slots: 50, shares: [{ slots: 10, heldSlots: 10 }] });
  });

  test('what a helper still uses is given to nobody else', () => {
    const busy = share(1, { slots: 50, heldSlots: 50, digits: '89abcdef', heldDigits: '89abcdef' });
    const { slots, digits, shares } = planShares({
      concurrency: 100,
      lead: { room: 1_000, inFlight: 50 },
      shares: [busy, share(2)],
    });
    expect(slots).toBe(34);
    expect(shares[0]).toMatchObject({ slots: 33, heldSlots: 50, heldDigits: '89abcdef' });
    expect(shares[1]).toMatchObject({ slots: 0, heldSlots: 0 });
    expect([digits, shares[1]?.digits].join('')).toHaveLength(8);
  });

  test('at any moment of any sequence the crawls of all are within the limit, and no digit has two', () => {
    const noise = createNoise(testSeed('shares'));
    for (let run = 0; run < 200; run++) {
      let concurrency = 1 + noise.int(60);
      let most = concurrency;
      let nextId = 1;
      let shares: Share[] = [];
      let lead = { slots: concurrency, inFlight: 0, digits: DIGITS };
      /** What each helper has read of its share, and its crawls. */
      const helpers = new Map<number, { slots: number; digits: string; inFlight: number }>();
      const steps: (() => void)[] = [
        () => {
          if (shares.length >= 5) return;
          shares = [...shares, share(nextId, { room: 1 + noise.int(40) })];
          helpers.set(nextId++, { slots: 0, digits: '', inFlight: 0 });
        },
        () => {
          const gone = shares[noise.int(shares.length || 1)];
          if (gone === undefined) return;
          shares = shares.filter((each) => each !== gone);
          helpers.delete(gone.shareId);
        },
        () => {
          const plan = planShares({
            concurrency,
            lead: { room: 1_000, inFlight: lead.inFlight },
            shares,
          });
          lead = { ...lead, slots: plan.slots, digits: plan.digits };
          // The write may be lost; the lead keeps to its plan all the same.
          if (noise.int(3) > 0) shares = [...plan.shares];
        },
        () => {
          for (const each of shares) {
            const helper = helpers.get(each.shareId);
            if (helper !== undefined && noise.int(2) === 0) {
              helper.slots = each.slots;
              helper.digits = each.digits;
            }
          }
        },
        () => {
          shares = shares.map((each) => {
            const helper = helpers.get(each.shareId);
            if (
              helper === undefined ||
              helper.digits !== each.digits ||
              helper.slots !== each.slots
            )
              return each;
            const heldSlots = Math.max(helper.inFlight, each.slots);
            return { ...each, heldSlots, heldDigits: each.digits };
          });
        },
        () => {
          lead.inFlight = Math.max(lead.inFlight - noise.int(9), 0);
          for (const each of helpers.values()) {
            each.inFlight = Math.max(each.inFlight - noise.int(9), 0);
          }
        },
        () => {
          lead.inFlight = Math.max(lead.inFlight, lead.slots - noise.int(3));
          for (const each of helpers.values()) {
            each.inFlight = Math.max(each.inFlight, each.slots - noise.int(3));
          }
        },
        () => {
          if (noise.int(10) > 0) return;
          concurrency = 1 + noise.int(60);
          most = Math.max(most, concurrency);
        },
      ];
      for (let n = 0; n < 100; n++) {
        noise.pick(steps)();
        const inFlight = [lead, ...helpers.values()].reduce((sum, each) => sum + each.inFlight, 0);
        expect(inFlight).toBeLessThanOrEqual(most);
        const digits = [lead, ...helpers.values()].map((each) => each.digits).join('');
        expect(new Set(digits).size).toBe(digits.length);
      }
    }
  });
});
