import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type AgreedTime, agreeOn, type TimeServer } from '../../../src/store/mongo/agreed-time.ts';
import { openServiceTime, type ServiceTime } from '../../../src/store/mongo/service-time.ts';
import { silentLogger } from '../../support/loggers.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2026, 0, 1);
/** Between two checks. */
const CHECK_MS = 30_000;

/** A server's clock that a test sets. */
function createServer() {
  let agreed: AgreedTime | undefined;
  let byMs = 0;
  const startedAt = performance.now();
  const shown = (): number => START + performance.now() - startedAt + byMs;
  const server: TimeServer = {
    clock: async () => new Date(shown()),
    agreed: async () => agreed,
    async agree(next, known) {
      if (known !== agreed) return false;
      agreed = next;
      return true;
    },
  };
  return { server, shown, set: (by: number) => void (byMs = by) };
}

let time: ReturnType<typeof createServer>;
const open: ServiceTime[] = [];

async function start(processId: string): Promise<ServiceTime> {
  const opened = await openServiceTime(time.server, processId, silentLogger);
  open.push(opened);
  return opened;
}

/** Lets time pass in which the processes check the clock, one after the other. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  time = createServer();
});
afterEach(() => {
  for (const each of open.splice(0)) each.close();
  vi.useRealTimers();
});

test.each([
  ['back by an hour', -HOUR],
  ['ahead by an hour', HOUR],
  ['back by a day', -DAY],
  ['ahead by a day', DAY],
])("processes agree and continue when the server's clock is set %s", async (_way, byMs) => {
  const first = await start('first');
  await pass(CHECK_MS / 2);
  const second = await start('second');
  const from = first.now().getTime();
  time.set(byMs);
  for (let passed = 5_000; passed <= 4 * CHECK_MS; passed += 5_000) {
    await pass(5_000);
    expect(first.now().getTime() - from).toBe(passed);
    expect(second.now().getTime() - from).toBe(passed);
  }
  for (const each of [first, second]) {
    expect(each.now().getTime() - each.aheadMs).toBe(time.shown());
  }
  const third = await start('third');
  expect(third.now()).toEqual(first.now());
});

test('a process that starts after the clock was set back does not begin before the others', async () => {
  const first = await start('first');
  await pass(CHECK_MS);
  time.set(-DAY);
  const second = await start('second');
  expect(second.now()).toEqual(first.now());
  await pass(2 * CHECK_MS);
  expect(second.now()).toEqual(first.now());
});

test('processes that all start anew continue where the last one was, or at the time of the clock', async () => {
  const before = await start('before');
  before.close();
  const from = before.now().getTime();
  time.set(-DAY);
  const behind = await start('behind');
  behind.close();
  expect(behind.now().getTime()).toBe(from);
  time.set(DAY);
  const ahead = await start('ahead');
  expect(ahead.now().getTime()).toBe(time.shown() + ahead.aheadMs);
  expect(ahead.aheadMs).toBeGreaterThanOrEqual(0);
});

test('a process whose own time stood still follows those who checked the clock lately', () => {
  const serverMs = START + DAY;
  const known = { aheadMs: 0, checkedAt: new Date(serverMs - 10_000), checkedBy: 'others' };
  const stood = { mineMs: -HOUR, serverMs, processId: 'stood' };
  expect(agreeOn(known, stood)).toBe(0);
  // Nobody has: it may as well be the clock that was set.
  expect(agreeOn({ ...known, checkedBy: 'stood' }, stood)).toBe(-HOUR);
  expect(agreeOn({ ...known, checkedAt: new Date(serverMs - HOUR) }, stood)).toBe(-HOUR);
});

test.each([
  ['on the way there', 1],
  ['on the way back', 0],
])('answers that are late %s change the time of a process by little', async (_way, there) => {
  const { clock } = time.server;
  /** How late the next answers are; further ones are not. */
  let late: number[] = [];
  const server: TimeServer = {
    ...time.server,
    async clock() {
      const lateMs = late.shift() ?? 0;
      vi.advanceTimersByTime(lateMs * there);
      const shown = await clock();
      vi.advanceTimersByTime(lateMs * (1 - there));
      return shown;
    },
  };
  late = Array.from({ length: 5 }, () => 1_200);
  const first = await openServiceTime(server, 'first', silentLogger);
  open.push(first);
  const offBy = (): number => Math.abs(first.now().getTime() - first.aheadMs - time.shown());
  expect(offBy()).toBeLessThan(50);
  late = Array.from({ length: 100 }, () => 1_200);
  await first.check();
  expect(offBy()).toBeLessThan(50);
});
