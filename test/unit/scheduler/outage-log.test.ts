import { expect, test, vi } from 'vitest';
import { createOutageLog } from '../../../src/scheduler/agenda/outage-log.ts';

const fail = async () => {
  throw new Error('away');
};

test('logs an outage once a minute and its end once, and lets every failure through', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const log: string[] = [];
  const write = (_fields: object, message: string) => void log.push(message);
  const outage = createOutageLog({ debug: write, info: write, warn: write, error: write });
  for (let second = 0; second < 90; second += 1) {
    await expect(outage.watch(fail)).rejects.toThrow('away');
    vi.advanceTimersByTime(1_000);
  }
  const away = 'the scheduler cannot reach its database; tasks wait until it answers';
  expect(log).toEqual([away, away]);
  for (let i = 0; i < 3; i += 1) expect(await outage.watch(async () => i)).toBe(i);
  expect(log).toEqual([away, away, 'the scheduler reaches its database again']);
  vi.useRealTimers();
});

test('does not take the late answer to an earlier question for the end', async () => {
  const log: string[] = [];
  const write = (_fields: object, message: string) => void log.push(message);
  const outage = createOutageLog({ debug: write, info: write, warn: write, error: write });
  const late = Promise.withResolvers<number>();
  const asked = outage.watch(() => late.promise);
  await expect(outage.watch(fail)).rejects.toThrow('away');
  late.resolve(1);
  expect(await asked).toBe(1);
  expect(log).toHaveLength(1);
});
