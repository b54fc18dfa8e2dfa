import { afterEach, expect, test, vi } from 'vitest';
import { createOutageLog } from '../../../src/scheduler/agenda/outage-log.ts';

const AWAY = 'the scheduler cannot reach its database; tasks wait until it answers';
const AGAIN = 'the scheduler reaches its database again';

afterEach(() => void vi.useRealTimers());

function recorded() {
  const log: string[] = [];
  const write = (_fields: object, message: string) => void log.push(message);
  return { log, outage: createOutageLog({ debug: write, info: write, warn: write, error: write }) };
}

const fail = async () => {
  throw new Error('away');
};

test('logs an outage once a minute and its end once, and lets every failure through', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { log, outage } = recorded();
  for (let second = 0; second < 90; second += 1) {
    await expect(outage.read(fail)).rejects.toThrow('away');
    vi.advanceTimersByTime(1_000);
  }
  expect(log).toEqual([AWAY, AWAY]);
  for (let i = 0; i < 3; i += 1) expect(await outage.read(async () => i)).toBe(i);
  expect(log).toEqual([AWAY, AWAY, AGAIN]);
});

test('does not take the late answer to an earlier question for the end', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { log, outage } = recorded();
  const late = Promise.withResolvers<number>();
  const asked = outage.read(() => late.promise);
  await expect(outage.read(fail)).rejects.toThrow('away');
  vi.advanceTimersByTime(5_000);
  late.resolve(1);
  expect(await asked).toBe(1);
  expect(log).toEqual([AWAY]);
});

test('a database that answers reads and refuses writes is one outage, until it takes a write', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { log, outage } = recorded();
  for (let second = 0; second < 50; second += 10) {
    await outage.read(async () => 1);
    await expect(outage.write(fail)).rejects.toThrow('away');
    vi.advanceTimersByTime(10_000);
  }
  expect(log).toEqual([AWAY]);
  await outage.write(async () => 1);
  expect(log).toEqual([AWAY, AGAIN]);
});

test('an outage of writes ends for a process that only reads when no write has failed for a while', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const { log, outage } = recorded();
  await expect(outage.write(fail)).rejects.toThrow('away');
  vi.advanceTimersByTime(14_000);
  await outage.read(async () => 1);
  expect(log).toEqual([AWAY]);
  vi.advanceTimersByTime(1_000);
  await outage.read(async () => 1);
  expect(log).toEqual([AWAY, AGAIN]);
});
