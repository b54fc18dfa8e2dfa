import { setImmediate as nextTick } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import type { Task } from '../../../src/scheduler/scheduler.ts';
import { eventually } from '../../support/eventually.ts';
import { createFrozenClock } from '../../support/test-clock.ts';
import { openHarness, type SchedulerDatabase } from './scheduler-harness.ts';

const HOUR = 3_600_000;
const options = { lockMs: 5_000, concurrency: 10 };
const { now } = systemClock;
const inMs = (ms: number) => new Date(now().getTime() + ms);
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve());
  });

/** A handler that notes each run and holds it until the test lets it go. */
function heldHandler() {
  const runs: (Task & { release(): void })[] = [];
  const handler = async (task: Task): Promise<void> => {
    const gate = Promise.withResolvers<void>();
    runs.push({ ...task, release: gate.resolve });
    await Promise.race([gate.promise, aborted(task.signal)]);
  };
  return { runs, handler };
}

/** What every clock must do, whichever database Agenda runs on. */
export function schedulerContract(name: string, open: () => Promise<SchedulerDatabase>): void {
  describe(`scheduler on ${name}`, () => {
    test('starts a due task at once, without waiting for a poll', async () => {
      // Polls never come.
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      onTestFinished(() => void vi.useRealTimers());
      await using harness = await openHarness(open);
      const { scheduler } = harness.process();
      const started = Promise.withResolvers<void>();
      scheduler.define('crawl', options, async () => started.resolve());
      await scheduler.start();
      await scheduler.wake('crawl', 'a', now());
      await started.promise;
    });

    test('runs what was woken before it was started', async () => {
      await using harness = await openHarness(open);
      const waker = harness.process().scheduler;
      await waker.wake('crawl', 'early', now());
      const { runs, handler } = heldHandler();
      const { scheduler } = harness.process();
      scheduler.define('crawl', options, handler);
      await scheduler.start();
      await eventually(() => expect(runs.map(({ key }) => key)).toEqual(['early']));
    });

    test('lets another process run what a process without tasks woke', async () => {
      await using harness = await openHarness(open);
      const [waker, worker] = [harness.process().scheduler, harness.process().scheduler];
      const { runs, handler } = heldHandler();
      worker.define('crawl', options, handler);
      await Promise.all([waker.start(), worker.start()]);
      await waker.wake('crawl', 'a', now());
      await eventually(() => expect(runs).toHaveLength(1));
    });

    test('waits for the time of a later wake, and takes the earlier of two', async () => {
      await using harness = await openHarness(open);
      const { scheduler } = harness.process();
      const started = Promise.withResolvers<number>();
      scheduler.define('crawl', options, async () => started.resolve(now().getTime()));
      await scheduler.start();
      const at = inMs(300);
      await scheduler.wake('crawl', 'a', inMs(HOUR));
      await scheduler.wake('crawl', 'a', at);
      await scheduler.wake('crawl', 'a', inMs(HOUR));
      expect(await started.promise).toBeGreaterThanOrEqual(at.getTime());
    });

    test('runs a task again that was woken while it ran, and never twice at once', async () => {
      await using harness = await openHarness(open);
      const { runs, handler } = heldHandler();
      const processes = [harness.process().scheduler, harness.process().scheduler];
      for (const scheduler of processes) {
        scheduler.define('crawl', options, handler);
        await scheduler.start();
      }
      const [scheduler] = processes as [(typeof processes)[0]];
      await scheduler.wake('crawl', 'a', now());
      await eventually(() => expect(runs).toHaveLength(1));
      await Promise.all([1, 2, 3].map(() => scheduler.wake('crawl', 'a', now())));
      await scheduler.wake('crawl', 'b', now());
      // b was woken last and has begun: what else is due has been looked at.
      await eventually(() => expect(runs.map(({ key }) => key)).toEqual(['a', 'b']));
      runs[0]?.release();
      await eventually(() => expect(runs.map(({ key }) => key)).toEqual(['a', 'b', 'a']));
      runs[2]?.release();
      await scheduler.wake('crawl', 'c', now());
      await eventually(() => expect(runs.map(({ key }) => key)).toEqual(['a', 'b', 'a', 'c']));
    });

    test('joins wakes of a task that has not begun', async () => {
      await using harness = await openHarness(open);
      const { scheduler } = harness.process();
      const keys: string[] = [];
      scheduler.define('crawl', { ...options, concurrency: 1 }, async ({ key }) => {
        keys.push(key);
      });
      await Promise.all(Array.from({ length: 100 }, () => scheduler.wake('crawl', 'a', now())));
      await scheduler.wake('crawl', 'end', inMs(10));
      await scheduler.start();
      await eventually(() => expect(keys).toEqual(['a', 'end']));
    });

    test('runs at most as many at once as the task allows, and all in the end', async () => {
      await using harness = await openHarness(open);
      const { scheduler } = harness.process();
      let [running, most, done] = [0, 0, 0];
      const gate = Promise.withResolvers<void>();
      scheduler.define('crawl', { ...options, concurrency: 3 }, async () => {
        running += 1;
        most = Math.max(most, running);
        await gate.promise;
        await new Promise(setImmediate);
        running -= 1;
        done += 1;
      });
      await scheduler.start();
      await Promise.all(
        Array.from({ length: 40 }, (_, i) => scheduler.wake('crawl', `${i}`, now())),
      );
      await eventually(() => expect(running).toBe(3));
      gate.resolve();
      await eventually(() => expect(done).toBe(40));
      expect(most).toBe(3);
    });

    test('shares 500 due tasks between two processes, each run once', async () => {
      await using harness = await openHarness(open);
      const keys: string[] = [];
      const counts = [0, 0];
      const processes = counts.map((_, index) => {
        const { scheduler } = harness.process();
        scheduler.define('crawl', options, async ({ key }) => {
          keys.push(key);
          counts[index] = (counts[index] ?? 0) + 1;
          await nextTick();
        });
        return scheduler;
      });
      const [first] = processes as [(typeof processes)[0]];
      await Promise.all(Array.from({ length: 500 }, (_, i) => first.wake('crawl', `${i}`, now())));
      await Promise.all(processes.map((scheduler) => scheduler.start()));
      await eventually(() => expect(keys.length).toBeGreaterThanOrEqual(500));
      expect(new Set(keys).size).toBe(500);
      expect(keys).toHaveLength(500);
      expect(Math.min(...counts)).toBeGreaterThan(0);
    });

    test('takes over the task of a process that crashed, once its lock lapses', async () => {
      await using harness = await openHarness(open);
      // Locks are as old as the test says, however long a busy machine takes.
      const clock = createFrozenClock();
      const [crashed, other] = [harness.process(clock), harness.process(clock)];
      const [before, after] = [heldHandler(), heldHandler()];
      const brief = { lockMs: 400, concurrency: 1 };
      crashed.scheduler.define('crawl', brief, before.handler);
      other.scheduler.define('crawl', brief, after.handler);
      await crashed.scheduler.start();
      await crashed.scheduler.wake('crawl', 'a', clock.now());
      const [run] = await eventually(() => {
        expect(before.runs).toHaveLength(1);
        return before.runs;
      });
      crashed.cutOff = true;
      await other.scheduler.start();
      clock.advance(400);
      await aborted(run?.signal ?? AbortSignal.abort());
      // A lock is respected for a while longer, so that its run stops first.
      expect(after.runs).toEqual([]);
      clock.advance(20);
      await eventually(() => expect(after.runs.map(({ key }) => key)).toEqual(['a']));
      // The first one's end must not touch what is the second one's now.
      crashed.cutOff = false;
      run?.release();
      await after.runs[0]?.touch();
      expect(after.runs[0]?.signal.aborted).toBe(false);
      after.runs[0]?.release();
    });

    test('keeps a lock that is touched, and aborts a run that is not', async () => {
      await using harness = await openHarness(open);
      const clock = createFrozenClock();
      const { scheduler } = harness.process(clock);
      const { runs, handler } = heldHandler();
      scheduler.define('crawl', { lockMs: 300, concurrency: 1 }, handler);
      await scheduler.start();
      await scheduler.wake('crawl', 'a', clock.now());
      const run = await eventually(() => {
        expect(runs).toHaveLength(1);
        return runs[0] as (typeof runs)[0];
      });
      for (let touches = 0; touches < 3; touches += 1) {
        clock.advance(299);
        await run.touch();
      }
      expect(run.signal.aborted).toBe(false);
      clock.advance(300);
      await aborted(run.signal);
      // It did not finish its work, so the work is not forgotten.
      await eventually(() => expect(runs).toHaveLength(2));
    });

    test('runs a task again that failed, about a second later, and logs it once', async () => {
      await using harness = await openHarness(open);
      const made = harness.process();
      const { scheduler } = made;
      const times: number[] = [];
      scheduler.define('crawl', options, async () => {
        times.push(performance.now());
        if (times.length === 1) throw new Error('once');
      });
      await scheduler.start();
      await scheduler.wake('crawl', 'a', now());
      await eventually(() => expect(times).toHaveLength(2));
      expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(900);
      expect(made.log).toEqual(['error: a task failed']);
    });

    test('repeats a task in one process at a time, though it fails and though its interval is set twice', async () => {
      await using harness = await openHarness(open);
      let [running, most, count] = [0, 0, 0];
      const start = performance.now();
      const processes = [harness.process(), harness.process()];
      for (const { scheduler } of processes) {
        scheduler.define('probe', options, async () => {
          running += 1;
          count += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 30));
          running -= 1;
          throw new Error('every time');
        });
        await scheduler.start();
        await scheduler.every('probe', 100);
      }
      await eventually(() => expect(count).toBeGreaterThanOrEqual(5));
      // The first run is due at once. An interval counts from the claim of a run in whole milliseconds.
      expect(count).toBeLessThanOrEqual(1 + (performance.now() - start) / 99);
      expect(most).toBe(1);
    });

    test('replaces the interval of a repeating task, and survives a restart without catching up', async () => {
      await using harness = await openHarness(open);
      const first = harness.process().scheduler;
      let count = 0;
      const handler = async () => {
        count += 1;
      };
      first.define('probe', options, handler);
      await first.start();
      await first.every('probe', 3_600_000);
      await eventually(() => expect(count).toBe(1));
      await first.every('probe', 100);
      await eventually(() => expect(count).toBeGreaterThanOrEqual(3));
      await first.close(1_000);
      await first.every('probe', 3_600_000);
      const atClose = count;
      const second = harness.process().scheduler;
      const marker = Promise.withResolvers<void>();
      second.define('probe', options, handler);
      second.define('crawl', options, async () => marker.resolve());
      await second.start();
      // Overdue by many of its intervals, it runs once and then keeps to the new one.
      await eventually(() => expect(count).toBe(atClose + 1));
      await second.wake('crawl', 'marker', inMs(250));
      await marker.promise;
      expect(count).toBe(atClose + 1);
    });

    test('closes: aborts what runs, waits for it, starts nothing, and leaves the work to others', async () => {
      await using harness = await openHarness(open);
      const [closing, other] = [harness.process().scheduler, harness.process().scheduler];
      const steps: string[] = [];
      closing.define('crawl', { ...options, concurrency: 1 }, async ({ key, signal }) => {
        steps.push(`${key} began`);
        await aborted(signal);
        await closing.wake('crawl', 'from the drain', now());
        steps.push(`${key} stopped`);
      });
      await closing.start();
      await closing.wake('crawl', 'a', now());
      await eventually(() => expect(steps).toEqual(['a began']));
      await closing.wake('crawl', 'b', now());
      await closing.close(5_000);
      expect(steps).toEqual(['a began', 'a stopped']);
      const { runs, handler } = heldHandler();
      other.define('crawl', options, handler);
      await other.start();
      await eventually(() => {
        const keys = runs.map(({ key }) => key).toSorted();
        expect(keys).toEqual(['a', 'b', 'from the drain']);
      });
    });

    test('closes within its limit though a task does not stop, and leaves no timer', async () => {
      const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout');
      await using harness = await openHarness(open);
      const before = timers().length;
      const made = harness.process();
      const { scheduler } = made;
      const never = Promise.withResolvers<void>();
      let began = 0;
      scheduler.define('crawl', options, async () => {
        began += 1;
        await never.promise;
      });
      await scheduler.start();
      await scheduler.wake('crawl', 'a', now());
      await eventually(() => expect(began).toBe(1));
      await scheduler.close(100);
      expect(made.log).toEqual(['warn: a task did not stop in time; its lock is left to lapse']);
      // The runner has timers of its own that come and go; that of the lock would remain for longer.
      await eventually(() => expect(timers().length).toBeLessThanOrEqual(before), {
        timeoutMs: options.lockMs / 2,
      });
      never.resolve();
    });

    test('outlives an unavailable database: wakes are refused, logged once, and all continues when it is back', async () => {
      await using harness = await openHarness(open);
      const made = harness.process();
      const { scheduler } = made;
      const keys: string[] = [];
      const gate = Promise.withResolvers<void>();
      scheduler.define('crawl', options, async (task) => {
        keys.push(task.key);
        if (task.key === 'through') await gate.promise;
        await task.touch();
      });
      await scheduler.start();
      await scheduler.wake('crawl', 'through', now());
      await eventually(() => expect(keys).toEqual(['through']));
      made.cutOff = true;
      await expect(scheduler.wake('crawl', 'refused', now())).rejects.toMatchObject({
        kind: 'unavailable',
      });
      gate.resolve();
      await eventually(() =>
        expect(made.log).toEqual([
          'error: the scheduler cannot reach its database; tasks wait until it answers',
        ]),
      );
      made.cutOff = false;
      await eventually(() =>
        expect(made.log.at(-1)).toBe('info: the scheduler reaches its database again'),
      );
      await scheduler.wake('crawl', 'after', now());
      await eventually(() => expect(keys).toEqual(['through', 'after']));
      expect(made.log.slice(2)).toEqual([]);
    });
  });
}
