import { expect, test } from 'vitest';
import { withDeadline, withDeadlines } from '../../../src/domain/deadline.ts';

const late = (): Error => new Error('too late');
const never = (): Promise<never> => new Promise(() => undefined);

test('work has until its deadline, and is left alone after it', async () => {
  expect(await withDeadline(Promise.resolve(1), 10_000, late)).toBe(1);
  await expect(withDeadline(Promise.reject(new Error('own')), 10_000, late)).rejects.toThrow('own');
  const work = Promise.withResolvers<number>();
  await expect(withDeadline(work.promise, 1, late)).rejects.toThrow('too late');
  work.reject(new Error('nobody waits for this one'));
});

test('each method of an object has the deadline', async () => {
  const methods = { name: 'tasks', hangs: never, answers: async (text: string) => text };
  const bounded = withDeadlines(methods, 1, late);
  await expect(bounded.hangs()).rejects.toThrow('too late');
  expect([bounded.name, await bounded.answers('yes')]).toEqual(['tasks', 'yes']);
});
