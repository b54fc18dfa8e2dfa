import { describe, expect, test } from 'vitest';
import type { TaskDocuments } from '../../../src/scheduler/agenda/task-documents.ts';
import type { SchedulerDatabase } from './scheduler-harness.ts';

const epoch = new Date('2030-01-01T00:00:00Z');
const at = (ms: number) => new Date(epoch.getTime() + ms);

/** What the scheduler's fenced writes do on either database. */
export function tasksContract(name: string, open: () => Promise<SchedulerDatabase>): void {
  async function withTasks(use: (tasks: TaskDocuments) => Promise<void>): Promise<void> {
    const database = await open();
    try {
      const backend = database.backend();
      await backend.connect();
      await use(backend.tasks);
    } finally {
      await database.close();
    }
  }
  const claimed = async (tasks: TaskDocuments, token: string, ms: number) => {
    const job = await tasks.claimDue('crawl', token, at(ms));
    return { job, lock: { id: '', repeats: false, ...job, token } };
  };

  describe(`task documents on ${name}`, () => {
    test('hold one document a task, due at the earliest wake', () =>
      withTasks(async (tasks) => {
        await Promise.all([30, 10, 20].map((ms) => tasks.wake('crawl', 'a', at(ms))));
        expect(await tasks.claimDue('crawl', 't', at(9))).toBeUndefined();
        const { job } = await claimed(tasks, 't1', 10);
        expect(job).toMatchObject({ token: 't1', key: 'a', repeats: false });
        expect(await tasks.claimDue('crawl', 't2', at(99))).toBeUndefined();
      }));

    test('refuse every write of a lock that lapsed and was taken over', () =>
      withTasks(async (tasks) => {
        await tasks.wake('crawl', 'a', at(0));
        const { lock } = await claimed(tasks, 'old', 0);
        expect(await tasks.claimLapsed('crawl', 'new', at(-1), at(5))).toBeUndefined();
        const taken = await tasks.claimLapsed('crawl', 'new', at(0), at(5));
        expect(taken?.id).toBe(lock.id);
        expect(await tasks.extend(lock, at(6))).toBe(false);
        expect(await tasks.finish(lock)).toBe(false);
        expect(await tasks.finish(lock, at(6))).toBe(false);
        const held = { ...lock, token: 'new' };
        expect(await tasks.extend(held, at(8))).toBe(true);
        expect(await tasks.finish(held)).toBe(false);
        expect(await tasks.extend(held, at(9))).toBe(false);
      }));

    test('keep a wake that came while the task ran', () =>
      withTasks(async (tasks) => {
        await tasks.wake('crawl', 'a', at(0));
        const { lock } = await claimed(tasks, 't', 0);
        await tasks.wake('crawl', 'a', at(5));
        expect(await tasks.claimDue('crawl', 'other', at(50))).toBeUndefined();
        expect(await tasks.finish(lock, at(30))).toBe(true);
        expect((await claimed(tasks, 't', 4)).job).toBeUndefined();
        expect((await claimed(tasks, 't', 5)).job).toMatchObject({ key: 'a' });
      }));

    test('make a claim that is given back due at once', () =>
      withTasks(async (tasks) => {
        await tasks.wake('crawl', 'a', at(0));
        const { lock } = await claimed(tasks, 't', 1);
        expect(await tasks.finish(lock, at(1))).toBe(true);
        expect((await claimed(tasks, 't', 1)).job).toMatchObject({ key: 'a' });
      }));

    test('repeat a task: at once when new, within a new interval, and later only from its next run', () =>
      withTasks(async (tasks) => {
        await Promise.all([1, 2].map(() => tasks.repeat('crawl', 1_000, at(0))));
        const { job, lock } = await claimed(tasks, 't', 0);
        expect(job).toMatchObject({ key: '', repeats: true });
        await tasks.repeat('crawl', 100, at(50));
        await tasks.finish(lock);
        expect((await claimed(tasks, 't', 149)).job).toBeUndefined();
        const next = await claimed(tasks, 't', 150);
        expect(next.job).toMatchObject({ repeats: true });
        await tasks.finish(next.lock);
        expect((await claimed(tasks, 't', 249)).job).toBeUndefined();
        expect((await claimed(tasks, 't', 250)).job).toBeDefined();
      }));
  });
}
