import { describe, expect, test } from 'vitest';
import {
  createHelperShare,
  createLeadShare,
  type RunActivity,
} from '../../../src/dispatcher/run-share.ts';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { KeptShare, Lease, Share, ShareStore, Sharing } from '../../../src/store/store.ts';
import { makeCrawler } from '../../contract/store/store-harness.ts';

const lease: Lease = { crawlerId: 'c', owner: 'lead', epoch: 1 };
const at = (ms: number): Date => new Date(1_000_000 + ms);

const joined: Share = {
  shareId: 1,
  processId: 'helper',
  room: 1_000,
  slots: 0,
  digits: '',
  heldSlots: 0,
  heldDigits: '',
  awaits: false,
};

/** A store that notes what it is told, and answers with the next revision or as `answer` says. */
function createStore(
  answer: (sharing: Sharing) => number | undefined = (each) => each.revision + 1,
) {
  const given: Sharing[] = [];
  const kept: KeptShare[] = [];
  const shares: Pick<ShareStore, 'give' | 'keepTo'> = {
    async give(_lease, sharing) {
      given.push(sharing);
      return answer(sharing);
    },
    async keepTo(_lease, share) {
      kept.push(share);
    },
  };
  return { shares, given, kept };
}

function activity(crawler: Crawler, overrides: Partial<RunActivity> = {}): RunActivity {
  return { crawler, inFlight: 0, isFull: false, nowMs: 0, ...overrides };
}

const wide = makeCrawler('a', { concurrency: 100 });
const roomFor = (): number => 1_000;

describe('the share of a lead', () => {
  test('is all of the crawler, and what helpers leave of it', async () => {
    const { shares, given } = createStore();
    const share = createLeadShare({ shares, roomFor });
    expect(share.limit(wide)).toBe(100);
    expect(share.digits).toBeUndefined();
    share.learn({ revision: 3, wantsHelp: false, shares: [joined] });
    share.decide(activity(wide, { inFlight: 80 }));
    expect(share.limit(wide)).toBe(50);
    await share.write(lease, at(0));
    expect(given).toMatchObject([{ revision: 3, shares: [{ slots: 20, heldSlots: 20 }] }]);
    expect(share.hasHelpers).toBe(true);
  });

  test('what was learned since the decision is not overwritten', async () => {
    const { shares, given } = createStore();
    const share = createLeadShare({ shares, roomFor });
    share.learn({ revision: 3, wantsHelp: false, shares: [joined] });
    share.decide(activity(wide));
    // The helper has gone.
    share.learn({ revision: 4, wantsHelp: false, shares: [] });
    await share.write(lease, at(0));
    expect(given).toEqual([]);
    share.decide(activity(wide));
    expect(share.limit(wide)).toBe(100);
  });

  test('a write without an answer counts as done for what it gives, and is repeated', async () => {
    let isAway = true;
    const { shares, given } = createStore((sharing) => {
      if (isAway) throw new Error('away');
      return sharing.revision + 1;
    });
    const share = createLeadShare({ shares, roomFor });
    share.learn({ revision: 3, wantsHelp: false, shares: [joined] });
    share.decide(activity(wide));
    await expect(share.write(lease, at(0))).rejects.toThrow('away');
    // News from before that write changes nothing.
    share.learn({ revision: 3, wantsHelp: false, shares: [joined] });
    share.decide(activity(wide));
    expect(share.limit(wide)).toBe(50);
    isAway = false;
    await share.write(lease, at(1_000));
    expect(given.map(({ revision }) => revision)).toEqual([3, 3]);
  });

  test.each([
    ['a wide crawler', wide, true],
    ['a small one', makeCrawler('a', { concurrency: 49 }), false],
    [
      'one with politeness',
      makeCrawler('a', {
        concurrency: 100,
        politeness: { maxPerHost: 2, delayMs: 0, robotsTxt: false },
      }),
      true,
    ],
    ['one in the browser', makeCrawler('a', { concurrency: 2, tokenType: 'javascript' }), true],
  ])('%s whose URLs wait for a second wants help, or does not', async (_name, crawler, wants) => {
    const { shares, given } = createStore();
    const share = createLeadShare({ shares, roomFor });
    for (let nowMs = 10_000; nowMs <= 11_500; nowMs += 500) {
      share.decide(activity(crawler, { isFull: true, inFlight: 1, nowMs }));
      if (nowMs < 11_000) await share.write(lease, at(nowMs));
    }
    expect(given).toEqual([]);
    await share.write(lease, at(11_500));
    expect(given).toMatchObject(wants ? [{ wantsHelp: true }] : []);
  });

  test('without other processes is the whole crawler for good', async () => {
    const share = createLeadShare({ shares: undefined, roomFor: () => 1 });
    share.decide(activity(wide, { isFull: true }));
    await share.write(lease, at(0));
    expect(share.limit(wide)).toBe(100);
  });
});

describe('the share of a helper', () => {
  const own: Lease = { crawlerId: 'c', owner: 'helper', epoch: -1 };
  const share20: Share = { ...joined, slots: 20, heldSlots: 20, digits: 'ef', heldDigits: 'ef' };

  test('is nothing at first, then what the lead gives', () => {
    const { shares } = createStore();
    const share = createHelperShare({ shares, roomFor }, own);
    expect(share.limit(wide)).toBe(0);
    expect(share.digits).toBe('');
    share.learn({ revision: 2, wantsHelp: false, shares: [share20] });
    expect(share.limit(wide)).toBe(20);
    expect(share.digits).toBe('ef');
  });

  test('has jobs to come while the hosts that the lead will give it are busy', () => {
    const share = createHelperShare({ shares: createStore().shares, roomFor }, own);
    expect(share.expectsJobs).toBe(false);
    share.learn({ revision: 2, wantsHelp: false, shares: [{ ...share20, digits: '' }] });
    expect(share.expectsJobs).toBe(true);
    share.learn({ revision: 3, wantsHelp: false, shares: [share20] });
    expect(share.expectsJobs).toBe(false);
    // Some of its digits may have no hosts.
    share.learn({ revision: 4, wantsHelp: false, shares: [{ ...share20, awaits: true }] });
    expect(share.expectsJobs).toBe(true);
  });

  test('tells what it keeps to, as its crawls end', async () => {
    const { shares, kept } = createStore();
    const share = createHelperShare({ shares, roomFor }, own);
    share.learn({
      revision: 2,
      wantsHelp: false,
      shares: [{ ...share20, slots: 10, digits: 'e' }],
    });
    expect(share.limit(wide)).toBe(10);
    share.decide(activity(wide, { inFlight: 15 }));
    await share.write(own, at(0));
    share.decide(activity(wide, { inFlight: 15 }));
    await share.write(own, at(1_000));
    share.decide(activity(wide, { inFlight: 4 }));
    await share.write(own, at(2_000));
    share.decide(activity(wide, { inFlight: 4 }));
    await share.write(own, at(3_000));
    expect(kept).toMatchObject([
      { slots: 15, digits: 'e' },
      { slots: 10, digits: 'e' },
    ]);
  });

  test('of a polite crawler keeps the digits of hosts that are busy', async () => {
    const { shares, kept } = createStore();
    const share = createHelperShare({ shares, roomFor }, own);
    const polite = { ...share20, slots: 10, digits: 'g', heldDigits: 'gij' };
    share.learn({ revision: 2, wantsHelp: false, shares: [polite] });
    let busy = new Set(['i', 'k']);
    const now = () => activity(wide, { inFlight: 5, busyDigits: () => busy });
    expect(share.digits).toBe('g');
    share.decide(now());
    await share.write(own, at(0));
    busy = new Set();
    share.decide(now());
    await share.write(own, at(1_000));
    expect(kept).toMatchObject([
      { digits: 'g', heldDigits: 'gi' },
      { digits: 'g', heldDigits: 'g' },
    ]);
  });
});

describe('the share of the lead of a polite crawler', () => {
  const polite = { ...wide, politeness: { maxPerHost: 1, delayMs: 0, robotsTxt: false } };

  test('gives hosts away once they are not busy', async () => {
    const { shares, given } = createStore();
    const share = createLeadShare({ shares, roomFor });
    share.learn({ revision: 3, wantsHelp: false, shares: [joined] });
    let busy = new Set('ghijklmnopqrstuv');
    const now = () => activity(polite, { busyDigits: () => busy });
    const write = async (ms: number) => {
      share.decide(now());
      // It starts nothing more of what it will give away.
      expect(share.digits).toBe('ghijklmn');
      await share.write(lease, at(ms));
    };
    await write(0);
    busy = new Set('ghijklmnopqruv');
    await write(1_000);
    await write(2_000);
    busy = new Set('ghijklmn');
    await write(3_000);
    expect(given.map(({ shares: [to] }) => to)).toMatchObject([
      { slots: 50, digits: '', awaits: true },
      { slots: 50, digits: 'st', awaits: true },
      { slots: 50, digits: 'stopqruv', awaits: false },
    ]);
  });

  test('has lent what it gave, until it has it back', async () => {
    const { shares } = createStore();
    const share = createLeadShare({ shares, roomFor });
    const decide = (revision: number, known: readonly Share[], busy = '') => {
      share.learn({ revision, wantsHelp: false, shares: known });
      share.decide(activity(polite, { busyDigits: () => new Set(busy) }));
      return Array.from(share.lent ?? []).join('');
    };
    // What is planned away and was never given is not lent.
    expect(decide(3, [joined], 'opqrstuv')).toBe('');
    expect(decide(4, [])).toBe('');
    expect(decide(5, [{ ...joined, digits: 'st', heldDigits: 'st' }])).toBe('st');
    expect(decide(6, [])).toBe('st');
    expect(decide(7, [])).toBe('');
  });

  test('first takes back what it gave by rids', async () => {
    const { shares, given } = createStore();
    const share = createLeadShare({ shares, roomFor });
    const helper = { ...joined, slots: 50, heldSlots: 50, digits: '89', heldDigits: '89' };
    share.learn({ revision: 3, wantsHelp: false, shares: [helper] });
    share.decide(activity(polite));
    expect(share.digits).toBe('01234567abcdef');
    await share.write(lease, at(0));
    expect(given[0]?.shares).toMatchObject([{ slots: 0, digits: '', heldDigits: '89' }]);
    const gone = { ...helper, slots: 0, heldSlots: 0, digits: '', heldDigits: '' };
    share.learn({ revision: 9, wantsHelp: false, shares: [gone] });
    share.decide(activity(polite));
    expect(share.digits).toBe('ghijklmn');
  });
});
