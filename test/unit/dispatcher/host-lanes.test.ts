import { describe, expect, test } from 'vitest';
import { createHostGates } from '../../../src/dispatcher/host-gate.ts';
import { createHostLanes, type HostLanes } from '../../../src/dispatcher/host-lanes.ts';
import type { Politeness } from '../../../src/domain/crawler-settings.ts';
import type { DueJob } from '../../../src/domain/job.ts';
import { hostDigit } from '../../../src/domain/share-digits.ts';
import { makeJob } from '../../contract/store/store-harness.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const crawler = webhookCrawler();
const OFF = { maxPerHost: 0, delayMs: 0, robotsTxt: false };
const SECOND = 1_000;

function jobOf(host: string): DueJob {
  return {
    ...makeJob(crawler, { url: `http://${host}/` }),
    ...({ state: 'waiting', retry: 0, attempt: 0, crashes: 0 } as const),
    firstTriedAt: undefined,
    dueAt: new Date(0),
  };
}

/** Lanes with the given number of jobs of each host, at time 0. */
function lanesOf(hosts: Readonly<Record<string, number>>): HostLanes {
  const lanes = createHostLanes();
  for (const [host, count] of Object.entries(hosts)) {
    for (let n = 0; n < count; n += 1) lanes.add(jobOf(host));
  }
  return lanes;
}

/** Starts the next job; its host, and its end. */
function start(lanes: HostLanes, nowMs: number, othersWait = false) {
  const job = lanes.next(nowMs, othersWait);
  if (job === undefined) return undefined;
  lanes.remove(job);
  lanes.started(job, nowMs);
  return { host: new URL(job.url).host, rid: job.rid };
}

/** Crawls with some slots for a time; how many crawls of each host began. */
function crawlFor(
  lanes: HostLanes,
  { slots, ms, tookMs }: { slots: number; ms: number; tookMs: (host: string) => number },
): Record<string, number> {
  const begun: Record<string, number> = {};
  let running: { rid: string; endsMs: number }[] = [];
  for (let now = 0; now < ms; now += 10) {
    for (const { rid } of running.filter(({ endsMs }) => endsMs <= now)) {
      lanes.ended(rid, { answer: { kind: 'answered' } }, now);
    }
    running = running.filter(({ endsMs }) => endsMs > now);
    while (running.length < slots) {
      const started = start(lanes, now);
      if (started === undefined) break;
      begun[started.host] = (begun[started.host] ?? 0) + 1;
      running.push({ rid: started.rid, endsMs: now + tookMs(started.host) });
    }
  }
  return begun;
}

describe('slots', () => {
  test('go to hosts in turn by the time that they hold them', () => {
    const lanes = lanesOf({ slow: 1_000, 'quick-a': 100_000, 'quick-b': 100_000 });
    const tookMs = (host: string): number => (host === 'slow' ? 30 * SECOND : 100);
    const begun = crawlFor(lanes, { slots: 6, ms: 300 * SECOND, tookMs });
    // A third of six slots: two crawls of 30 s at once for 300 s.
    expect(begun['slow']).toBeGreaterThanOrEqual(15);
    expect(begun['slow']).toBeLessThanOrEqual(25);
    expect(begun['quick-a']).toBeGreaterThan(5_000);
    expect(begun['quick-b']).toBeGreaterThan(5_000);
  });

  test.each([50, 400, 1_500])(
    'are not lost to a host that never answers while the first pages of another one take %d ms',
    (firstMs) => {
      const lanes = lanesOf({ hangs: 100, quick: 10_000 });
      let pages = 0;
      const tookMs = (host: string): number => {
        if (host === 'hangs') return 30 * SECOND;
        pages += 1;
        return pages <= 5 ? firstMs : 50;
      };
      const begun = crawlFor(lanes, { slots: 10, ms: 29 * SECOND, tookMs });
      expect(begun['hangs']).toBeLessThanOrEqual(6);
      expect(begun['quick']).toBeGreaterThan(1_500);
    },
  );

  test('all go to a host that is alone', () => {
    const lanes = lanesOf({ alone: 50 });
    for (let n = 0; n < 50; n += 1) expect(start(lanes, 0)?.host).toBe('alone');
    expect(start(lanes, 0)).toBeUndefined();
  });

  test('are kept for hosts that are still to be read from one that has had its part', () => {
    const lanes = lanesOf({ slow: 9 });
    expect(start(lanes, 0, true)?.host).toBe('slow');
    expect(start(lanes, 30 * SECOND, true)).toBeUndefined();
    expect(lanes.next(30 * SECOND, true)).toBeUndefined();
    expect(lanes.startable(30 * SECOND)).toBe(8);
    expect(start(lanes, 30 * SECOND, false)?.host).toBe('slow');
  });
});

describe('the pace of a crawler', () => {
  test('bounds the crawls of each host at once', () => {
    const lanes = lanesOf({ a: 5, b: 5 });
    lanes.keep({ ...crawler, politeness: { ...OFF, maxPerHost: 2 } });
    const started = Array.from({ length: 10 }, () => start(lanes, 0));
    const hosts = started.flatMap((each) => each?.host ?? []);
    expect(hosts.filter((host) => host === 'a')).toHaveLength(2);
    expect(hosts.filter((host) => host === 'b')).toHaveLength(2);
    expect(lanes.startable(0)).toBe(0);
    expect(lanes.nextAt(0)).toBeUndefined();
    lanes.ended(started[0]?.rid ?? '', {}, 1);
    expect(start(lanes, 1)?.host).toBe(started[0]?.host);
  });

  test('spaces the starts at each host, as robots.txt does', () => {
    const lanes = lanesOf({ a: 5 });
    lanes.keep({ ...crawler, politeness: { ...OFF, delayMs: SECOND, robotsTxt: true } });
    const first = start(lanes, 0);
    expect(start(lanes, 5 * SECOND)).toBeUndefined();
    lanes.ended(first?.rid ?? '', { robotsDelayMs: 20 * SECOND }, 6 * SECOND);
    expect(lanes.nextAt(7 * SECOND)).toBe(26 * SECOND);
    expect(start(lanes, 25 * SECOND)).toBeUndefined();
    const second = start(lanes, 26 * SECOND);
    expect(second?.host).toBe('a');
    // Its request waits for a connection, and the delay counts from the moment it is sent.
    expect(lanes.nextAt(27 * SECOND)).toBeUndefined();
    expect(start(lanes, 99 * SECOND)).toBeUndefined();
    lanes.sent(second?.rid ?? '', 100 * SECOND);
    expect(lanes.nextAt(101 * SECOND)).toBe(120 * SECOND);
    expect(start(lanes, 120 * SECOND)?.host).toBe('a');
  });
});

test.each([
  { reason: 'timeout', longest: 60 },
  { reason: 'connect_timeout', longest: 900 },
])('a host with $reason is tried every $longest seconds at least', ({ reason, longest }) => {
  const lanes = lanesOf({ 'a.example': 40 });
  let now = 0;
  const waits: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    const { rid = '' } = start(lanes, now) ?? {};
    lanes.ended(rid, { answer: { kind: 'away', reason } }, now);
    const next = lanes.nextAt(now) ?? now;
    waits.push((next - now) / SECOND);
    now = next;
  }
  expect(waits.slice(0, 5)).toEqual([0, 0, 5, 10, 20]);
  expect(Math.max(...waits)).toBe(longest);
});

describe('a host that is not reached', () => {
  const away = { answer: { kind: 'away', reason: 'connection_failed' } } as const;
  const nameless = { answer: { kind: 'away', reason: 'name_not_found' } } as const;

  test('is put aside after three crawls, tried alone with growing waits, and comes back', () => {
    const lanes = lanesOf({ dead: 20 });
    const burst = Array.from({ length: 5 }, () => start(lanes, 0));
    const changes = burst.map((each) => lanes.ended(each?.rid ?? '', away, SECOND));
    expect(changes.map((each) => each?.trouble?.kind)).toEqual([
      undefined,
      undefined,
      'away',
      undefined,
      undefined,
    ]);
    let now = SECOND;
    for (const waitMs of [5 * SECOND, 10 * SECOND, 20 * SECOND]) {
      expect(start(lanes, now)).toBeUndefined();
      expect(lanes.nextAt(now)).toBe(now + waitMs);
      now += waitMs;
      const tried = start(lanes, now);
      expect(start(lanes, now)).toBeUndefined();
      lanes.ended(tried?.rid ?? '', away, now);
    }
    expect(lanes.awayOf('dead')?.since).toEqual(new Date(SECOND));
    expect(lanes.wanted(now, 4, '')).toMatchObject({ closed: ['dead'], full: [] });
    now += 40 * SECOND;
    const answered = start(lanes, now);
    const back = lanes.ended(answered?.rid ?? '', { answer: { kind: 'answered' } }, now);
    expect(back).toEqual({ host: 'dead', trouble: undefined });
    expect([start(lanes, now), start(lanes, now)].map((each) => each?.host)).toEqual([
      'dead',
      'dead',
    ]);
  });

  test.each([
    ['the retry window is over', 1, away],
    ['its name has not existed for an hour', 48, nameless],
  ] as const)('is not put aside any more when %s', (_when, retryWindowHours, away) => {
    const lanes = lanesOf({ dead: 9 });
    lanes.keep({ ...crawler, politeness: undefined, retryWindowHours });
    let now = 0;
    for (let n = 0; n < 3; n += 1) lanes.ended(start(lanes, now)?.rid ?? '', away, now);
    now += 3_600 * SECOND;
    for (let n = 0; n < 5; n += 1) {
      const tried = start(lanes, now);
      expect(tried?.host).toBe('dead');
      expect(start(lanes, now)).toBeUndefined();
      now += 1;
      lanes.ended(tried?.rid ?? '', away, now);
    }
  });

  test('is put aside as before when its name was not found once', () => {
    const lanes = lanesOf({ dead: 9 });
    lanes.keep({ ...crawler, politeness: undefined, retryWindowHours: 48 });
    let now = 0;
    for (let n = 0; n < 3; n += 1) lanes.ended(start(lanes, now)?.rid ?? '', away, now);
    now += 3_600 * SECOND;
    lanes.ended(start(lanes, now)?.rid ?? '', nameless, now);
    expect(start(lanes, now + SECOND)).toBeUndefined();
    expect(lanes.awayOf('dead')).toMatchObject({ reason: 'name_not_found', since: new Date(0) });
  });

  test('leaves the others alone', () => {
    const lanes = lanesOf({ dead: 9, fine: 9 });
    for (let n = 0; n < 6; n += 1) {
      const tried = start(lanes, n);
      lanes.ended(tried?.rid ?? '', tried?.host === 'dead' ? away : {}, n);
    }
    const started = Array.from({ length: 5 }, () => start(lanes, 9)?.host);
    expect(new Set(started)).toEqual(new Set(['fine']));
  });
});

describe('a host that asks for less', () => {
  test('waits as a whole for as long as it says', () => {
    const lanes = lanesOf({ busy: 9, other: 9 });
    lanes.keep({ ...crawler, politeness: undefined });
    const first = start(lanes, 0);
    const told = { answer: { kind: 'slow', retryAfterMs: 30 * SECOND } } as const;
    const change = lanes.ended(first?.rid ?? '', told, SECOND);
    expect(change?.trouble).toMatchObject({ kind: 'slow', untilMs: 31 * SECOND });
    const rest = Array.from({ length: 9 }, () => start(lanes, 30 * SECOND)?.host);
    expect(new Set(rest)).toEqual(new Set([first?.host === 'busy' ? 'other' : 'busy']));
    expect(lanes.nextAt(30 * SECOND)).toBe(31 * SECOND);
  });

  test('gets its crawls at growing intervals, and at shorter ones again as it answers', () => {
    const lanes = lanesOf({ busy: 1_000 });
    let now = 0;
    const take = (answer: { kind: 'slow' } | { kind: 'answered' }): number => {
      const at = lanes.next(now, false) === undefined ? (lanes.nextAt(now) ?? now) : now;
      const waitedMs = at - now;
      now = at;
      const started = start(lanes, now);
      now += 1;
      lanes.ended(started?.rid ?? '', { answer }, now);
      return waitedMs;
    };
    expect([1, 2, 3, 4].map(() => take({ kind: 'slow' }))).toEqual([0, 250, 500, 1_000]);
    for (let n = 0; n < 200; n += 1) take({ kind: 'answered' });
    expect(take({ kind: 'answered' })).toBe(0);
    expect(lanes.next(now, false)).toBeDefined();
  });

  /** Crawls one URL after the other, 20 ms each. Returns the time of all and how many were answered. */
  function crawlAll(isAnswered: (n: number, now: number) => boolean) {
    const lanes = lanesOf({ busy: 1_000 });
    let now = 0;
    let answered = 0;
    for (let n = 0; n < 1_000; n += 1) {
      if (lanes.next(now, false) === undefined) now = lanes.nextAt(now) ?? now;
      const { rid = '' } = start(lanes, now) ?? {};
      now += 20;
      const isGood = isAnswered(n, now);
      if (isGood) answered += 1;
      const answer = isGood
        ? ({ kind: 'answered' } as const)
        : ({ kind: 'slow', mayBePage: true } as const);
      lanes.ended(rid, { answer }, now);
    }
    return { ms: now, answered };
  }

  test('is not one of whose pages some are always unavailable', () => {
    const { ms } = crawlAll((n) => n % 8 !== 7);
    expect(ms).toBeLessThan(2 * 1_000 * 20);
  });

  test('is asked each five seconds, at the least, if half of its pages are always unavailable', () => {
    const { ms } = crawlAll((n) => n % 2 === 1);
    expect(ms).toBeLessThan(1_000 * 6 * SECOND);
  });

  test('is one that answers 503 when it is asked too often', () => {
    let servedAt: number[] = [];
    const { ms, answered } = crawlAll((_, now) => {
      servedAt = servedAt.filter((at) => at > now - SECOND);
      if (servedAt.length >= 10) return false;
      servedAt.push(now);
      return true;
    });
    expect(answered).toBeGreaterThan(800);
    expect(answered / (ms / SECOND)).toBeGreaterThan(5);
  });
});

test('failures of a host count together, also when it has no other jobs here between them', () => {
  const lanes = createHostLanes();
  for (const now of [0, 100, 200]) {
    lanes.add(jobOf('a.example'));
    const { rid = '' } = start(lanes, now) ?? {};
    lanes.ended(rid, { answer: { kind: 'away', reason: 'timeout' } }, now + 50);
  }
  expect(lanes.troubled()).toEqual({ away: 1, slow: 0 });
});

describe('settings for single hosts', () => {
  test('are those of the first rule that matches, and pauses stop a host', () => {
    const lanes = lanesOf({ 'a.example': 3, 'b.shop.example': 3, 'c.example': 3 });
    const hosts = [
      { pattern: '*.shop.example', maxPerHost: 2, paused: false },
      { pattern: '*.example', maxPerHost: 1, paused: false },
    ];
    const keep = (pausedHosts: string[]) =>
      lanes.keep({ retryWindowHours: 1, politeness: { ...OFF, hosts }, pausedHosts });
    keep(['c.example']);
    expect(lanes.startable(0)).toBe(3);
    const begun = [1, 2, 3, 4].map(() => start(lanes, 0)?.host);
    expect(begun).toHaveLength(4);
    expect(begun.filter((host) => host === 'b.shop.example')).toHaveLength(2);
    expect(begun.filter((host) => host === 'a.example')).toHaveLength(1);
    keep([]);
    expect(start(lanes, 0)?.host).toBe('c.example');
  });
});

describe('what other processes know', () => {
  const away = { kind: 'away', reason: 'timeout', untilMs: 9_000 } as const;
  const health = { ...away, failures: 3, asideMs: 5_000, spacingMs: 0, awaySinceMs: 1_000 };
  const numbers = { running: 0, tries: 4, tookMs: 9, failures: {}, perSecond: 0 };

  test('puts a host aside, and one try later it is known here', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    lanes.learn([{ host: 'a.example', ...numbers, lastMs: 4_000, health }], 5_000);
    expect(start(lanes, 8_999)).toBeUndefined();
    expect(lanes.nextAt(8_999)).toBe(9_000);
    const tried = start(lanes, 9_000);
    expect(start(lanes, 9_000)).toBeUndefined();
    lanes.ended(tried?.rid ?? '', { answer: { kind: 'answered' }, tried: {} }, 9_100);
    expect(start(lanes, 9_100)).toBeDefined();
    expect(lanes.troubled()).toEqual({ away: 0, slow: 0 });
  });

  test('says nothing of a host that has answered here since, or of long ago', () => {
    const lanes = lanesOf({ 'a.example': 3, 'b.example': 1 });
    const first = start(lanes, 0);
    lanes.ended(first?.rid ?? '', { answer: { kind: 'answered' }, tried: {} }, 4_500);
    lanes.learn([{ host: first?.host ?? '', ...numbers, lastMs: 4_000, health }], 5_000);
    const old = { host: 'b.example', ...numbers, lastMs: 1, health: { ...health, untilMs: 2 } };
    lanes.learn([old], 3_600_000);
    expect(lanes.troubled()).toEqual({ away: 0, slow: 0 });
  });

  test('is what this one saves', () => {
    const lanes = lanesOf({ 'a.example': 5 });
    for (const now of [0, 10, 20]) {
      const { rid = '' } = start(lanes, now) ?? {};
      const tried = { failure: 'timeout' };
      lanes.ended(rid, { answer: { kind: 'away', reason: 'timeout' }, tried }, now + 5);
    }
    const [state] = lanes.states(100);
    expect(state).toMatchObject({ tries: 3, tookMs: 15, failures: { timeout: 3 }, lastMs: 25 });
    const other = lanesOf({ 'a.example': 1 });
    other.learn(lanes.states(100), 100);
    expect(other.nextAt(100)).toBe(lanes.nextAt(100));
  });
});

test('a job that a later run has read before its crawl ended is forgotten with the others', () => {
  const lanes = createHostLanes();
  const job = jobOf('a.example');
  lanes.add(job);
  lanes.remove(job);
  lanes.started(job, 0);
  // The run was aborted. The next one reads the job before the crawl has ended.
  lanes.add(job);
  lanes.ended(job.rid, {}, 10);
  lanes.remove(job);
  expect(lanes.next(20, false)).toBeUndefined();
});

test('a job that a later run has started before its crawl ended counts once', () => {
  const lanes = createHostLanes();
  const politeness = { ...OFF, maxPerHost: 1, delayMs: 1 };
  lanes.keep({ retryWindowHours: 1, politeness });
  const job = jobOf('a.example');
  for (const at of [0, 10]) {
    lanes.add(job);
    lanes.remove(job);
    lanes.started(job, at);
  }
  lanes.add(jobOf('a.example'));
  lanes.ended(job.rid, {}, 20);
  lanes.ended(job.rid, {}, 30);
  expect(start(lanes, 100)?.host).toBe('a.example');
});

describe('a delay that is changed', () => {
  const politeness = { ...OFF, delayMs: 60_000 };
  const keep = (lanes: HostLanes, delayMs: number, group = {}): void =>
    lanes.keep({
      accountId: 'one',
      retryWindowHours: 1,
      politeness: { ...politeness, delayMs, ...group },
    });

  test('counts from the last request', () => {
    const lanes = lanesOf({ 'a.example': 3, 'b.example': 1 });
    keep(lanes, 60_000);
    const first = start(lanes, 1_000);
    lanes.sent(first?.rid ?? '', 1_500);
    lanes.ended(first?.rid ?? '', { answer: { kind: 'answered' } }, 2_000);
    start(lanes, 2_000);
    for (const delayMs of [10_000, 90_000, 5_000]) {
      keep(lanes, delayMs);
      expect(lanes.nextAt(2_000)).toBe(1_500 + delayMs);
    }
    keep(lanes, 0);
    expect(start(lanes, 2_001)?.host).toBe('a.example');
  });

  test('is not that of robots.txt when nothing asks for it any more', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    const asking = (robotsTxt: boolean): void =>
      lanes.keep({ retryWindowHours: 1, politeness: { ...OFF, delayMs: 100, robotsTxt } });
    asking(true);
    const { rid = '' } = start(lanes, 1_000) ?? {};
    lanes.ended(rid, { robotsDelayMs: 600_000 }, 2_000);
    expect(lanes.nextAt(2_000)).toBe(602_000);
    asking(false);
    expect(lanes.nextAt(2_000)).toBe(2_100);
    asking(true);
    expect(lanes.nextAt(2_000)).toBe(602_000);
  });

  test('counts also of hosts that have no lane any more', () => {
    const lanes = createHostLanes();
    keep(lanes, 60_000);
    for (let n = 0; n < 2_100; n += 1) {
      lanes.add(jobOf(`${n}.example`));
      const { rid = '' } = start(lanes, 1_000) ?? {};
      lanes.sent(rid, 1_000);
      lanes.ended(rid, { answer: { kind: 'answered' } }, 1_000);
    }
    const job = jobOf('0.example');
    expect(lanes.takes(job, 8_000)).toBe(false);
    keep(lanes, 5_000);
    expect(lanes.takes(job, 5_999)).toBe(false);
    expect(lanes.takes(job, 8_000)).toBe(true);
  });

  test('does not move a host without a lane that another crawler of the group has asked', () => {
    const gates = createHostGates();
    const one = createHostLanes(undefined, gates);
    const other = createHostLanes(undefined, gates);
    keep(one, 1_000, { group: 'shop' });
    keep(other, 600_000, { group: 'shop' });
    const crawlOne = (lanes: HostLanes, host: string, at: number): void => {
      lanes.add(jobOf(host));
      const { rid = '' } = start(lanes, at) ?? {};
      lanes.sent(rid, at);
      lanes.ended(rid, { answer: { kind: 'answered' } }, at);
    };
    crawlOne(one, '0.example', 1_000);
    crawlOne(other, '0.example', 2_000);
    for (let n = 1; n < 2_100; n += 1) crawlOne(one, `${n}.example`, 2_001);
    other.close();
    keep(one, 1_000, { group: 'shop' });
    expect(one.takes(jobOf('0.example'), 4_000)).toBe(false);
  });

  test('lets go of a host that its lane held before it was forgotten', () => {
    const gates = createHostGates();
    const one = createHostLanes(undefined, gates);
    const other = createHostLanes(undefined, gates);
    keep(one, 3_600_000, { group: 'shop' });
    keep(other, 0, { group: 'shop' });
    other.add(jobOf('0.example'));
    for (let n = 0; n < 2_100; n += 1) {
      one.add(jobOf(`${n}.example`));
      const { rid = '' } = start(one, 1_000) ?? {};
      one.sent(rid, 1_000);
      one.ended(rid, { answer: { kind: 'answered' } }, 1_000);
    }
    one.add(jobOf('0.example'));
    expect(other.nextAt(1_000)).toBe(3_601_000);
    keep(one, 0, { group: 'shop' });
    expect(start(other, 1_001)?.host).toBe('0.example');
  });

  test('does not shorten what was held before its crawler came to the host', () => {
    const gates = createHostGates();
    const one = createHostLanes(undefined, gates);
    const other = createHostLanes(undefined, gates);
    for (const lanes of [one, other]) keep(lanes, 60_000, { group: 'shop' });
    one.add(jobOf('a.example'));
    one.add(jobOf('a.example'));
    one.sent(start(one, 1_000)?.rid ?? '', 1_000);
    other.add(jobOf('a.example'));
    keep(other, 0, { group: 'shop' });
    expect(one.nextAt(1_000)).toBe(61_000);
  });

  test('is taken from the last request, whatever robots.txt has said after it', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    const asking = (robotsTxt: boolean): void =>
      lanes.keep({ retryWindowHours: 1, politeness: { ...OFF, delayMs: 30_000, robotsTxt } });
    asking(true);
    const state = {
      host: 'a.example',
      running: 0,
      tries: 1,
      tookMs: 1,
      failures: {},
      perSecond: 0,
    };
    const first = start(lanes, 40_000);
    lanes.sent(first?.rid ?? '', 40_000);
    lanes.ended(first?.rid ?? '', { answer: { kind: 'answered' } }, 40_100);
    lanes.learn([{ ...state, lastMs: 50_000, robotsDelayMs: 120_000 }], 50_000);
    asking(false);
    expect(lanes.nextAt(50_000)).toBe(70_100);
  });

  test('does not shorten that of another crawler of the pace group that has asked last', () => {
    const gates = createHostGates();
    const member = (): HostLanes => {
      const lanes = createHostLanes(undefined, gates);
      keep(lanes, 60_000, { group: 'shop' });
      lanes.add(jobOf('a.example'));
      lanes.add(jobOf('a.example'));
      return lanes;
    };
    const [one, other] = [member(), member()];
    const { rid = '' } = start(other, 1_000) ?? {};
    other.sent(rid, 1_000);
    keep(one, 5_000, { group: 'shop' });
    expect(one.nextAt(1_000)).toBe(61_000);
    keep(other, 5_000, { group: 'shop' });
    expect(one.nextAt(1_000)).toBe(6_000);
  });
});

describe('a host that waits for a proxy', () => {
  const waits = {
    answer: { kind: 'waits', reason: 'proxy_unavailable', untilMs: 900_000 },
  } as const;
  const version = (ms: number) => ({
    retryWindowHours: 1,
    politeness: OFF,
    updatedAt: new Date(ms),
  });

  test('is asked once its crawler has changed, which may have another proxy', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    lanes.keep(version(1));
    lanes.ended(start(lanes, 1_000)?.rid ?? '', waits, 1_000);
    lanes.keep(version(1));
    expect(lanes.nextAt(1_000)).toBe(900_000);
    lanes.keep(version(2));
    expect(start(lanes, 1_000)?.host).toBe('a.example');
  });

  test('waits no longer for what a crawl says that began before the change', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    lanes.keep(version(1));
    const { rid = '' } = start(lanes, 1_000) ?? {};
    lanes.keep(version(2));
    lanes.ended(rid, waits, 5_000);
    expect(start(lanes, 5_000)?.host).toBe('a.example');
  });

  test('waits on for what it has asked for before', () => {
    const lanes = lanesOf({ 'a.example': 3 });
    lanes.keep(version(1));
    const [first, second] = [start(lanes, 1_000), start(lanes, 1_000)];
    const slow = { answer: { kind: 'slow', retryAfterMs: 600_000 } } as const;
    lanes.ended(first?.rid ?? '', slow, 2_000);
    lanes.ended(second?.rid ?? '', waits, 3_000);
    lanes.keep(version(2));
    expect(lanes.nextAt(3_000)).toBe(602_000);
  });

  test('also if it has no lane any more', () => {
    const lanes = createHostLanes();
    lanes.keep(version(1));
    for (let n = 0; n < 2_100; n += 1) {
      lanes.add(jobOf(`${n}.example`));
      lanes.ended(start(lanes, 1_000)?.rid ?? '', waits, 1_000);
    }
    expect(lanes.takes(jobOf('0.example'), 2_000)).toBe(false);
    lanes.keep(version(2));
    expect(lanes.takes(jobOf('0.example'), 2_000)).toBe(true);
  });
});

test('robots.txt of one crawler does not shorten the delay of another one in its pace group', () => {
  const gates = createHostGates();
  const member = (politeness: Politeness): HostLanes => {
    const lanes = createHostLanes(undefined, gates);
    lanes.keep({ accountId: 'one', retryWindowHours: 1, politeness });
    for (let n = 0; n < 2; n += 1) lanes.add(jobOf('a.example'));
    return lanes;
  };
  const reader = member({ ...OFF, robotsTxt: true, group: 'shop' });
  const slow = member({ ...OFF, delayMs: 10_000, group: 'shop' });
  const first = start(reader, 0);
  const second = start(slow, 0);
  slow.sent(second?.rid ?? '', 0);
  reader.ended(first?.rid ?? '', {}, 100);
  expect(slow.nextAt(200)).toBe(10_000);
});

test.each([
  { what: 'crawls at once', pace: { maxPerHost: 1 } },
  { what: 'a delay', pace: { delayMs: 100 } },
])('crawlers of a pace group take turns at a host: $what', ({ pace }) => {
  const gates = createHostGates();
  const hosts: string[] = [];
  const starts = [0, 0, 0];
  const inFlight: { lanes: HostLanes; rid: string }[] = [];
  let nowMs = 0;
  const all = starts.map((_, index) => {
    const lanes = createHostLanes(undefined, gates);
    lanes.keep({
      accountId: 'one',
      retryWindowHours: 1,
      politeness: { ...OFF, ...pace, group: 'shop' },
    });
    // The second has other hosts, too, and the third asks with one slot.
    const fill = (): void => {
      for (;;) {
        if (index === 2 && inFlight.some((each) => each.lanes === lanes)) return;
        const next = lanes.next(nowMs, false);
        if (next !== undefined && lanes.letOthersFirst(next, nowMs)) continue;
        const begun = start(lanes, nowMs);
        if (begun === undefined) return;
        hosts.push(begun.host);
        if (begun.host === 'a.example') starts[index] = (starts[index] ?? 0) + 1;
        inFlight.push({ lanes, rid: begun.rid });
      }
    };
    lanes.watch(() => undefined, fill);
    for (let n = 0; n < 100; n += 1) lanes.add(jobOf('a.example'));
    if (index === 1) for (let n = 0; n < 10; n += 1) lanes.add(jobOf(`${n}.example`));
    return { lanes, fill };
  });
  for (; nowMs < 6_000; nowMs += 100) {
    for (const { lanes, rid } of inFlight.splice(0)) {
      lanes.sent(rid, nowMs);
      lanes.ended(rid, {}, nowMs);
      // As in a run: the crawler whose crawl has ended is the first one that looks.
      all.find((each) => each.lanes === lanes)?.fill();
    }
    for (const { fill } of all) fill();
  }
  const total = starts.reduce((sum, count) => sum + count, 0);
  expect(total).toBeGreaterThan(25);
  for (const count of starts) expect(count).toBeGreaterThanOrEqual(Math.floor(total / 3) - 1);
  expect(hosts).toContain('9.example');
});

test('a crawler that joins a pace group with crawls in flight tells the others', () => {
  const gates = createHostGates();
  const politeness = (group?: string) => ({
    ...OFF,
    maxPerHost: 1,
    ...(group === undefined ? {} : { group }),
  });
  const member = (group?: string): HostLanes => {
    const lanes = createHostLanes(undefined, gates);
    lanes.keep({ accountId: 'one', retryWindowHours: 1, politeness: politeness(group) });
    for (let n = 0; n < 2; n += 1) lanes.add(jobOf('a.example'));
    return lanes;
  };
  const [inside, joins] = [member('shop'), member()];
  expect(start(joins, 0)).toBeDefined();
  expect(inside.next(1, false)).toBeDefined();
  joins.keep({ accountId: 'one', retryWindowHours: 1, politeness: politeness('shop') });
  expect(inside.next(2, false)).toBeUndefined();
  joins.keep({ accountId: 'one', retryWindowHours: 1, politeness: politeness() });
  expect(inside.next(3, false)).toBeDefined();
});

describe('the delay of a host that another process may have crawled', () => {
  const politeness = { ...OFF, delayMs: 2_000 };

  test('is over before the first crawl, after another process led or had its digit', () => {
    const lanes = createHostLanes();
    lanes.keep({ retryWindowHours: 1, politeness });
    lanes.led(1_000);
    lanes.add(jobOf('a.example'));
    expect(lanes.nextAt(1_000)).toBe(3_000);
    const { rid = '' } = start(lanes, 3_000) ?? {};
    expect([...lanes.busyDigits(3_000)]).toEqual([hostDigit('a.example')]);
    lanes.ended(rid, {}, 3_100);
    expect(lanes.busyDigits(3_100).size).toBe(0);
    lanes.gained([hostDigit('a.example')], 6_000);
    lanes.add(jobOf('a.example'));
    expect(lanes.nextAt(6_000)).toBe(8_000);
  });

  test('counts from the time at which the other process let the crawler go', () => {
    const startsAt = (formerMs: number | undefined, forgottenMs = 0) => {
      const lanes = createHostLanes(undefined, undefined, () => forgottenMs);
      lanes.keep({ retryWindowHours: 1, politeness });
      lanes.led(formerMs);
      lanes.add(jobOf('a.example'));
      return lanes.nextAt(10_000) ?? 0;
    };
    expect(startsAt(9_500)).toBe(11_500);
    expect(startsAt(3_000)).toBe(0);
    expect(startsAt(undefined)).toBe(0);
    // What this process has forgotten counts as well.
    expect(startsAt(3_000, 9_000)).toBe(11_000);
    expect(startsAt(undefined, 9_000)).toBe(11_000);
  });

  test('counts from what was forgotten before its lanes were made, or lately for a group', () => {
    let forgottenMs = 1_000;
    const startsAt = (group: object) => {
      forgottenMs = 1_000;
      const lanes = createHostLanes(undefined, undefined, () => forgottenMs);
      lanes.keep({
        accountId: 'one',
        retryWindowHours: 1,
        politeness: { ...politeness, ...group },
      });
      forgottenMs = 9_000;
      lanes.led(undefined);
      lanes.add(jobOf('a.example'));
      return lanes.nextAt(10_000) ?? 0;
    };
    expect(startsAt({})).toBe(0);
    expect(startsAt({ group: 'shop' })).toBe(11_000);
  });

  test('is not over for a host whose robots.txt asks for a longer one', () => {
    const lanes = createHostLanes();
    lanes.keep({ retryWindowHours: 1, politeness: { ...politeness, robotsTxt: true } });
    lanes.add(jobOf('a.example'));
    const { rid = '' } = start(lanes, 0) ?? {};
    lanes.ended(rid, { robotsDelayMs: 9_000 }, 100);
    expect(lanes.busyDigits(9_000).size).toBe(1);
    expect(lanes.busyDigits(9_100).size).toBe(0);
  });
});

describe('priorities', () => {
  const HOUR = 3_600 * SECOND;
  const order = (jobs: readonly DueJob[], nowMs: number): string[] => {
    const lanes = createHostLanes();
    for (const job of jobs) lanes.add(job);
    return jobs.flatMap(() => {
      const started = start(lanes, nowMs);
      if (started === undefined) return [];
      lanes.ended(started.rid, { answer: { kind: 'answered' } }, nowMs + SECOND);
      return jobs.find(({ rid }) => rid === started.rid)?.url ?? '';
    });
  };
  const job = (url: string, priority: number, dueMs = 0): DueJob => ({
    ...jobOf(new URL(url).host),
    url,
    priority,
    dueAt: new Date(dueMs),
  });

  test('order the jobs of a host, each step by an hour of waiting', () => {
    const jobs = [
      job('http://a/1', 5),
      job('http://a/2', 4),
      job('http://a/3', 9, 3 * HOUR),
      job('http://a/4', 9, 5 * HOUR),
    ];
    expect(order(jobs, 5 * HOUR)).toEqual(['http://a/3', 'http://a/1', 'http://a/2', 'http://a/4']);
  });

  test('come before the turns of other hosts, but for what has waited for hours', () => {
    const late = 5 * HOUR;
    const jobs = [
      job('http://old/', 5),
      job('http://new/1', 5, late),
      job('http://new/2', 5, late),
      job('http://urgent/1', 8, late),
      job('http://urgent/2', 8, late),
      job('http://most/', 9, late),
    ];
    const begun = order(jobs, late);
    const [first, ...others] = begun;
    expect(first).toBe('http://old/');
    expect(others.slice(0, 3)).toEqual(['http://most/', 'http://urgent/1', 'http://urgent/2']);
  });

  test('of the same height leave hosts their turns by time', () => {
    const jobs = ['a', 'b', 'c'].flatMap((host) => [
      job(`http://${host}/`, 9),
      job(`http://${host}/`, 9),
    ]);
    const begun = order(jobs, 0);
    expect(new Set(begun.slice(0, 3)).size).toBe(3);
  });
});
