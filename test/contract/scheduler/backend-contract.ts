import type { JobParameters, JobRepository } from 'agenda';
import { describe, expect, test } from 'vitest';
import type { SchedulerDatabase } from './scheduler-harness.ts';

const epoch = new Date('2030-01-01T00:00:00Z');
const at = (ms: number) => new Date(epoch.getTime() + ms);

function job(fields: Partial<JobParameters> = {}): JobParameters {
  return { name: 'job', type: 'normal', priority: 0, nextRunAt: at(0), data: {}, ...fields };
}

/** What Agenda's repository must do on either database; the official MongoDB one is the measure. */
export function backendContract(name: string, open: () => Promise<SchedulerDatabase>): void {
  async function withRepository(use: (jobs: JobRepository) => Promise<void>): Promise<void> {
    const database = await open();
    try {
      const { agenda } = database.backend();
      await agenda.connect();
      await use(agenda.repository);
    } finally {
      await database.close();
    }
  }
  const idOf = (saved: JobParameters | undefined) => String(saved?._id);
  const save = (jobs: JobRepository, fields: Partial<JobParameters>) =>
    jobs.saveJob(job(fields), { lastModifiedBy: 'test' });

  describe(`Agenda's repository on ${name}`, () => {
    test('keeps every field, and connects twice without harm', () =>
      withRepository(async (jobs) => {
        const full: Partial<JobParameters> = {
          priority: -10,
          data: { text: 'ä "quoted"', list: [1, 'two', null], nested: { yes: true } },
          repeatInterval: '5 minutes',
          repeatTimezone: 'Europe/Berlin',
          repeatAt: '3:00 pm',
          disabled: true,
          fork: false,
          startDate: at(1),
          endDate: at(2),
          skipDays: [0, 6],
        };
        const saved = await save(jobs, full);
        await jobs.connect();
        const read = await jobs.getJobById(idOf(saved));
        expect(read).toEqual(saved);
        expect(read).toMatchObject({ ...job(full), lastModifiedBy: 'test' });
        expect(await jobs.getJobById('0123456789abcdef01234567')).toBeNull();
      }));

    test('saves by id, emptying what is left out, and does not bring a removed job back', () =>
      withRepository(async (jobs) => {
        const saved = await save(jobs, { repeatInterval: 1_000, data: { v: 1 } });
        await jobs.saveJob({ ...job({ data: { v: 2 } }), _id: saved._id as never }, undefined);
        const read = await jobs.getJobById(idOf(saved));
        expect(read?.data).toEqual({ v: 2 });
        expect(read?.repeatInterval).toBeUndefined();
        expect(read?.lastModifiedBy).toBeUndefined();
        await jobs.removeJobs({ id: idOf(saved) });
        await jobs.saveJob({ ...job({ data: { v: 3 } }), _id: saved._id as never }, undefined);
        await expect(jobs.saveJobState(saved, undefined)).rejects.toThrow(/job/);
        expect(await jobs.getJobById(idOf(saved))).toBeNull();
      }));

    test('keeps one job of type single a name, and its due time when the new one is past', () =>
      withRepository(async (jobs) => {
        const first = await save(jobs, { type: 'single', nextRunAt: at(5_000) });
        const past = new Date(Date.now() - 1_000);
        const second = await save(jobs, { type: 'single', nextRunAt: past, data: { v: 2 } });
        expect(second).toMatchObject({ _id: first._id, nextRunAt: at(5_000), data: { v: 2 } });
        const third = await save(jobs, { type: 'single', nextRunAt: at(9_000) });
        expect(third).toMatchObject({ _id: first._id, nextRunAt: at(9_000) });
        await save(jobs, { name: 'other', type: 'single', nextRunAt: past });
        expect((await jobs.queryJobs()).total).toBe(2);
        expect((await jobs.queryJobs({ name: 'other' })).jobs[0]?.nextRunAt).toEqual(past);
      }));

    test('keeps one job a unique key; insertOnly leaves it as it is', () =>
      withRepository(async (jobs) => {
        const unique = { 'data.user.id': 7 };
        const first = await save(jobs, { unique, data: { user: { id: 7 }, v: 1 } });
        const second = await save(jobs, { unique, data: { user: { id: 7 }, v: 2 } });
        expect(second).toMatchObject({ _id: first._id, data: { v: 2 } });
        const third = await save(jobs, {
          unique,
          uniqueOpts: { insertOnly: true },
          data: { user: { id: 7 }, v: 3 },
        });
        expect(third).toMatchObject({ _id: first._id, data: { v: 2 } });
        const other = await save(jobs, {
          unique: { 'data.user.id': '7' },
          uniqueOpts: { insertOnly: true },
          data: { user: { id: '7' } },
        });
        expect(other._id).not.toBe(first._id);
        await expect(save(jobs, { unique: { $where: 'true' } })).rejects.toThrow(/unique/);
      }));

    test('debounces: trailing moves the time on until maxWait, leading keeps the first', () =>
      withRepository(async (jobs) => {
        const saveDebounced = (key: string, strategy: 'leading' | 'trailing', maxWait?: number) =>
          save(jobs, {
            nextRunAt: new Date(0),
            unique: { 'data.key': key },
            data: { key },
            uniqueOpts: {
              debounce: { delay: 60_000, strategy, ...(maxWait ? { maxWait } : {}) },
            },
          });
        const start = Date.now();
        const first = await saveDebounced('t', 'trailing');
        expect(first.nextRunAt?.getTime()).toBeGreaterThanOrEqual(start + 60_000);
        const second = await saveDebounced('t', 'trailing');
        expect(second._id).toBe(first._id);
        expect(second.debounceStartedAt).toEqual(first.debounceStartedAt);
        await new Promise((resolve) => setTimeout(resolve, 5));
        const forced = await saveDebounced('t', 'trailing', 1);
        expect(forced.nextRunAt?.getTime()).toBeLessThan(Date.now() + 1_000);
        expect(forced.debounceStartedAt).toBeUndefined();
        const leading = await saveDebounced('l', 'leading');
        expect(leading.nextRunAt).toEqual(new Date(0));
        expect((await saveDebounced('l', 'leading')).nextRunAt).toEqual(new Date(0));
      }));

    test('gives out due jobs by time, then priority; not disabled, later or locked ones', () =>
      withRepository(async (jobs) => {
        await save(jobs, { data: 'second', nextRunAt: at(10) });
        await save(jobs, { data: 'third', nextRunAt: at(20), priority: 1 });
        await save(jobs, { data: 'first', nextRunAt: at(10), priority: 10 });
        await save(jobs, { data: 'later', nextRunAt: at(101) });
        await save(jobs, { data: 'never', nextRunAt: null });
        await save(jobs, { data: 'disabled', nextRunAt: at(0), disabled: true });
        await save(jobs, { name: 'other', nextRunAt: at(0) });
        const next = () => jobs.getNextJobToRun('job', at(100), at(-100), at(50), undefined);
        const given = [await next(), await next(), await next(), await next()];
        expect(given.map((one) => one?.data)).toEqual(['first', 'second', 'third', undefined]);
        expect(given[0]?.lockedAt).toEqual(at(50));
        const lapsed = await jobs.getNextJobToRun('job', at(-1), at(50), at(200), {
          lastModifiedBy: 'me',
        });
        expect(lapsed).toMatchObject({ data: 'first', lockedAt: at(200), lastModifiedBy: 'me' });
      }));

    test('gives each due job to one of many callers', () =>
      withRepository(async (jobs) => {
        await Promise.all(Array.from({ length: 20 }, (_, i) => save(jobs, { data: { i } })));
        const given = await Promise.all(
          Array.from({ length: 30 }, () =>
            jobs.getNextJobToRun('job', at(1), at(-100), at(0), undefined),
          ),
        );
        const ids = given.filter((one) => one !== undefined).map((one) => idOf(one));
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.length).toBe(20);
      }));

    test('locks a job as it was read, and unlocks', () =>
      withRepository(async (jobs) => {
        const saved = await save(jobs, {});
        expect(await jobs.lockJob({ ...saved, nextRunAt: at(1) }, undefined)).toBeUndefined();
        const locked = await jobs.lockJob(saved, { lastModifiedBy: 'me' });
        expect(locked).toMatchObject({ lastModifiedBy: 'me' });
        expect(locked?.lockedAt).toBeInstanceOf(Date);
        expect(await jobs.lockJob(saved, undefined)).toBeUndefined();
        await jobs.unlockJob(saved);
        expect((await jobs.getJobById(idOf(saved)))?.lockedAt).toBeUndefined();
        const state = { ...saved, nextRunAt: null, lockedAt: at(3), failCount: 2, progress: 50 };
        await jobs.saveJobState(state, { lastModifiedBy: 'me' });
        await jobs.unlockJob(saved);
        expect(await jobs.getJobById(idOf(saved))).toMatchObject({
          nextRunAt: null,
          lockedAt: at(3),
          failCount: 2,
          progress: 50,
        });
        await jobs.unlockJobs([idOf(saved)]);
        expect((await jobs.getJobById(idOf(saved)))?.lockedAt).toBeUndefined();
      }));

    test.each<[string, Parameters<JobRepository['removeJobs']>[0], string[]]>([
      ['a name', { name: 'a' }, ['b1', 'c1']],
      ['names', { names: ['a', 'b'] }, ['c1']],
      ['all other names', { notNames: ['a'] }, ['a1', 'a2']],
      ['a part of the data', { data: { tag: 'a1' } }, ['a2', 'b1', 'c1']],
      ['nested data and a name', { name: 'b', data: { deep: { on: true } } }, ['a1', 'a2', 'c1']],
      ['data of another type', { data: { deep: { on: 1 } } }, ['a1', 'a2', 'b1', 'c1']],
      ['nothing', {}, ['a1', 'a2', 'b1', 'c1']],
    ])('removes, disables and enables jobs by %s', (_what, options, left) =>
      withRepository(async (jobs) => {
        for (const tag of ['a1', 'a2', 'b1', 'c1']) {
          const deep = { on: tag === 'b1' };
          await save(jobs, { name: tag.slice(0, 1), data: { tag, deep } });
        }
        const tags = (list: readonly JobParameters[]) =>
          list.map(({ data }) => (data as { tag: string }).tag).toSorted();
        expect(await jobs.disableJobs(options)).toBe(4 - left.length);
        const enabled = await jobs.queryJobs({ includeDisabled: false });
        expect(tags(enabled.jobs)).toEqual(left);
        expect(await jobs.enableJobs(options)).toBe(4 - left.length);
        expect((await jobs.queryJobs({ includeDisabled: false })).total).toBe(4);
        expect(await jobs.removeJobs(options)).toBe(4 - left.length);
        expect(tags((await jobs.queryJobs()).jobs)).toEqual(left);
      }),
    );

    test('removes by ids, ignores ids of another kind, and purges all', () =>
      withRepository(async (jobs) => {
        const ids: string[] = [];
        for (let i = 0; i < 4; i += 1) ids.push(idOf(await save(jobs, {})));
        expect(await jobs.removeJobs({ ids: ids.slice(0, 2) })).toBe(2);
        expect(await jobs.removeJobs({ id: 'no such id' })).toBe(0);
        expect(await jobs.purgeAllJobs()).toBe(2);
      }));

    test('lists, counts and sums up jobs by state', () =>
      withRepository(async (jobs) => {
        const past = new Date(Date.now() - 60_000);
        await save(jobs, { name: 'Alpha', data: 1, nextRunAt: at(1) });
        await save(jobs, { name: 'Alpha', data: 2, nextRunAt: at(2) });
        await save(jobs, { name: 'beta', data: 3, nextRunAt: past });
        const failed = await save(jobs, { name: 'beta', data: 4, nextRunAt: null });
        await jobs.saveJobState({ ...failed, failedAt: past, failReason: 'why' }, undefined);
        const data = async (options: Parameters<JobRepository['queryJobs']>[0]) => {
          const { jobs: found, total } = await jobs.queryJobs(options);
          return { total, data: found.map((one) => one.data) };
        };
        expect(await data({})).toEqual({ total: 4, data: [2, 1, 3, 4] });
        const sort = { data: 'asc' } as const;
        expect(await data({ sort, skip: 1, limit: 2 })).toEqual({ total: 4, data: [2, 3] });
        expect(await data({ sort, search: 'ALPH' })).toEqual({ total: 2, data: [1, 2] });
        expect(await data({ sort, search: '.*' })).toEqual({ total: 0, data: [] });
        expect(await data({ state: 'failed' })).toEqual({ total: 1, data: [4] });
        expect(await data({ state: 'scheduled', sort, skip: 1 })).toEqual({ total: 2, data: [2] });
        expect(await data({ data: 3 })).toEqual({ total: 1, data: [3] });
        expect(await jobs.getQueueSize()).toBe(1);
        expect((await jobs.getDistinctJobNames()).toSorted()).toEqual(['Alpha', 'beta']);
        const overview = await jobs.getJobsOverview();
        expect(overview.toSorted((a, b) => a.name.localeCompare(b.name))).toMatchObject([
          { name: 'Alpha', total: 2, scheduled: 2, failed: 0 },
          { name: 'beta', total: 2, queued: 1, failed: 1 },
        ]);
      }));
  });
}
