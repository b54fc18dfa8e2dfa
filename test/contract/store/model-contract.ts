import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { failedOf, removedOf } from '../../../src/domain/batch.ts';
import type { Crawler } from '../../../src/domain/crawler.ts';
import type { QueuedJob } from '../../../src/domain/job.ts';
import { orderMs } from '../../../src/domain/priority.ts';
import type { Lease } from '../../../src/store/store.ts';
import { byLength } from '../../support/length.ts';
import { pushedBefore, releasedAfterDeadline, type Step, steps } from './model-steps.ts';
import { toDelivery, toRelease, toRetry, toStored } from './outcomes.ts';
import {
  at,
  claimJobs,
  createBench,
  finishJobs,
  LIMITS,
  makeJobs,
  type OpenedStore,
  type OpenStore,
  renewLease,
  type StoreBench,
} from './store-harness.ts';

interface BatchModel {
  accepted: number;
  completed: number;
  failed: number;
  removed: number;
  isClosed: boolean;
  isCompleted: boolean;
}

/**
 * The state tables of the specification in their simplest form: the state of each job, and the
 * counts.
 */
interface Model {
  readonly state: Map<string, 'waiting' | 'running' | 'retrying'>;
  /** The deadlines, in seconds, of jobs with a queue timeout that were never tried. */
  readonly deadlines: Map<string, number>;
  /** The jobs that have unique keys, or had them, and until which second these hold. */
  readonly keys: Map<string, { readonly rid: string; readonly until: number | undefined }>;
  /** When jobs fall due, and their priority. */
  readonly due: Map<string, { readonly dueAt: Date; readonly priority: number }>;
  /** The batches of jobs, of ended ones too, and what they count. */
  readonly batchOf: Map<string, string>;
  readonly batches: Map<string, BatchModel>;
  readonly ended: { completed: number; failed: number; deleted: number; purged: number };
  pushed: number;
  paused: boolean;
}

const emptyModel = (): Model => ({
  state: new Map(),
  deadlines: new Map(),
  keys: new Map(),
  due: new Map(),
  batchOf: new Map(),
  batches: new Map(),
  ended: { completed: 0, failed: 0, deleted: 0, purged: 0 },
  pushed: 0,
  paused: false,
});

const SECOND = 1_000;
const TTL_MS = 60_000;

/** One crawler of a real store, compared with its model. */
class Life {
  readonly #bench: StoreBench;
  readonly #delivery: 'storage' | 'webhook';
  #crawler: Crawler | undefined;
  #lease: Lease | undefined;
  #running = new Map<string, QueuedJob>();
  /** Those that were running when the queue was purged: they do not come back to it. */
  readonly #purged = new Set<string>();
  #model = emptyModel();
  #second = 0;
  #process = 0;

  constructor(opened: OpenedStore, delivery: 'storage' | 'webhook') {
    this.#bench = createBench(opened);
    this.#delivery = delivery;
  }

  async take(step: Step): Promise<void> {
    this.#second += 1;
    this.#crawler ??= await this.#bench.crawler({ delivery: this.#delivery });
    await this.#act(step, this.#crawler);
    await this.#compare();
  }

  async #act(step: Step, crawler: Crawler): Promise<void> {
    const model = this.#model;
    const now = at(this.#second * SECOND);
    switch (step.do) {
      case 'push': {
        const deadline = this.#second + 1_000;
        const queueDeadline = step.timeout ? at(deadline * SECOND) : undefined;
        const { priority = 5, delay = 0 } = step;
        const dueAt = at((this.#second + delay) * SECOND);
        const notBefore = delay === 0 ? undefined : dueAt;
        const { key, keyFor = 0, batch } = step;
        const until = keyFor === 0 ? undefined : this.#second + keyFor;
        const holds = until === undefined ? {} : { until: at(until * SECOND) };
        const unique = key === undefined ? undefined : { key, ...holds };
        const job = { createdAt: now, queueDeadline, priority, notBefore, unique, batch };
        const jobs = makeJobs(crawler, step.count, job);
        const expected = jobs.map(({ rid }) => {
          const first = key === undefined ? undefined : this.#keptBy(key);
          if (first !== undefined) return { rid: first, duplicate: true };
          if (model.batches.get(batch ?? '')?.isClosed) return { refused: 'batch_closed' };
          if (key !== undefined) model.keys.set(key, { rid, until });
          this.#enter(rid, batch);
          model.state.set(rid, 'waiting');
          model.due.set(rid, { dueAt, priority });
          if (step.timeout) model.deadlines.set(rid, deadline);
          model.pushed += 1;
          return { rid };
        });
        const { outcomes } = await this.#bench.push(jobs, now, LIMITS);
        expect(outcomes).toEqual(expected);
        return;
      }
      case 'claim': {
        const lease = await this.#leaseNow(crawler);
        const { jobs } = await claimJobs(this.#bench.store, lease, step.count, now);
        // A job that was returned untried after its deadline is left to the queue timeout.
        const due = [...model.state]
          .filter(
            ([rid, state]) =>
              state !== 'running' &&
              this.#due(rid).dueAt <= now &&
              (model.deadlines.get(rid) ?? Infinity) > this.#second,
          )
          .map(([rid]) => rid)
          .toSorted((a, b) => orderMs(this.#due(a)) - orderMs(this.#due(b)) || (a < b ? -1 : 1));
        expect(jobs.map(({ rid }) => rid)).toEqual(model.paused ? [] : due.slice(0, step.count));
        for (const job of jobs) {
          expect(model.state.get(job.rid)).toMatch(/^(waiting|retrying)$/);
          model.state.set(job.rid, 'running');
          model.deadlines.delete(job.rid);
          this.#running.set(job.rid, job);
        }
        return;
      }
      case 'succeed':
      case 'fail':
      case 'retry':
      case 'release':
        return this.#finish(step.do, step.pick, now);
      case 'delete_job': {
        const rid = [...model.state.keys()][step.pick % Math.max(model.state.size, 1)];
        if (rid === undefined) return;
        expect(await this.#bench.store.queue.deleteJob(crawler.crawlerId, rid, now)).toBe(true);
        this.#remove(rid);
        model.ended.deleted += 1;
        return;
      }
      case 'pause':
      case 'unpause':
        await this.#bench.store.crawlers.setPaused(crawler.crawlerId, `user_${step.do}`, now);
        model.paused = step.do === 'pause';
        return;
      case 'purge': {
        const waiting = [...model.state].filter(([, state]) => state !== 'running');
        expect(await this.#bench.store.queue.purge(crawler.crawlerId, now)).toBe(waiting.length);
        for (const [rid] of waiting) this.#remove(rid);
        for (const rid of this.#running.keys()) this.#purged.add(rid);
        model.keys.clear();
        model.ended.purged += waiting.length;
        return;
      }
      case 'close_batch':
        return this.#close(crawler, step.batch, now);
      case 'cancel_batch':
        return this.#cancel(crawler, step.batch, now);
      case 'complete_batches':
        return this.#complete(crawler, now);
      case 'expire':
        return this.#expire();
      case 'crash':
        await this.#bench.crash();
        // Another process, after the lease of the dead one has lapsed.
        this.#process += 1;
        this.#second += 100;
        this.#lease = undefined;
        await this.#leaseNow(crawler);
        await this.#readDueOf([...this.#running.keys()]);
        this.#takeOver();
        return;
      case 'delete_crawler':
        await this.#bench.store.crawlers.remove(crawler.crawlerId);
        for (const job of this.#running.values()) {
          expect(await this.#bench.store.queue.finish([toStored(job)], now)).toEqual(['lost']);
        }
        this.#crawler = undefined;
        this.#lease = undefined;
        this.#running.clear();
        this.#model = emptyModel();
        return;
    }
  }

  async #close({ crawlerId }: Crawler, name: string, now: Date): Promise<void> {
    const batch = this.#model.batches.get(name);
    const closed = await this.#bench.store.batches.close(crawlerId, name, now);
    expect(closed === undefined).toBe(batch === undefined);
    if (batch !== undefined) batch.isClosed = true;
  }

  async #cancel(crawler: Crawler, name: string, now: Date): Promise<void> {
    await this.#close(crawler, name, now);
    const { batches } = this.#bench.store;
    const batch = await batches.get(crawler.crawlerId, name, now);
    if (batch === undefined) return;
    const waiting = [...this.#model.state].filter(
      ([rid, state]) => state !== 'running' && this.#model.batchOf.get(rid) === name,
    );
    expect(await batches.cancel(batch, 1_000, now)).toBe(waiting.length);
    for (const [rid] of waiting) this.#remove(rid);
    this.#model.ended.purged += waiting.length;
  }

  async #complete({ crawlerId }: Crawler, now: Date): Promise<void> {
    const { batches, maintain } = this.#bench.store;
    // What a purge has left stands in the way until then.
    await maintain(now);
    const found = (await batches.done(100, now)).filter((each) => each.crawlerId === crawlerId);
    const done = [...this.#model.batches].filter(
      ([name, { isClosed, isCompleted }]) =>
        isClosed &&
        !isCompleted &&
        ![...this.#model.state.keys()].some((rid) => this.#model.batchOf.get(rid) === name),
    );
    expect(new Set(found.map(({ name }) => name))).toEqual(new Set(done.map(([name]) => name)));
    for (const batch of found) {
      expect(await batches.complete(batch, undefined, now)).toBe(true);
      expect(await batches.complete(batch, undefined, now)).toBe(false);
    }
    for (const [, batch] of done) batch.isCompleted = true;
  }

  /** The job that a push with the key gets in place of its own. */
  #keptBy(key: string): string | undefined {
    const { keys, state } = this.#model;
    const { rid = '', until } = keys.get(key) ?? {};
    return (until === undefined ? state.has(rid) : until > this.#second) ? rid : undefined;
  }

  async #finish(how: 'succeed' | 'fail' | 'retry' | 'release', pick: number, now: Date) {
    const job = [...this.#running.values()][pick % Math.max(this.#running.size, 1)];
    const lease = this.#lease;
    if (job === undefined || lease === undefined) return;
    const { rid, retry, queueDeadline } = job;
    const record = how === 'fail' ? { cbStatus: 521 } : {};
    const end = this.#delivery === 'storage' ? toStored(job, record) : toDelivery(job, record);
    const back = how === 'retry' ? toRetry(job, now) : toRelease(job);
    const outcome = how === 'retry' || how === 'release' ? back : end;
    expect(await finishJobs(this.#bench.store, [outcome], now, lease)).toMatchObject({
      verdicts: ['won'],
    });
    // A worker that tells the end a second time changes nothing.
    expect(await finishJobs(this.#bench.store, [outcome], now, lease)).toMatchObject({
      verdicts: ['lost'],
    });
    this.#running.delete(rid);
    if (how === 'retry' || how === 'release') {
      if (this.#isPurged(rid)) return;
    }
    this.#model.due.set(rid, { ...this.#due(rid), dueAt: now });
    if (how === 'retry') this.#model.state.set(rid, 'retrying');
    else if (how === 'release') {
      this.#model.state.set(rid, retry > 0 ? 'retrying' : 'waiting');
      if (retry === 0 && queueDeadline !== undefined) {
        this.#model.deadlines.set(rid, (queueDeadline.getTime() - at(0).getTime()) / SECOND);
      }
    } else {
      this.#countEnd(rid, how === 'succeed' ? 'completed' : 'failed');
      this.#forget(rid);
      this.#model.ended[how === 'succeed' ? 'completed' : 'failed'] += 1;
    }
  }

  async #expire(): Promise<void> {
    this.#second += 2_000;
    this.#lease = undefined;
    const now = at(this.#second * SECOND);
    const late = await this.#bench.store.queue.overdue(now, 1_000);
    expect(new Set(late.map((job) => job.rid))).toEqual(new Set(this.#model.deadlines.keys()));
    const outcomes = late.map((job) => toStored(job, { cbStatus: 699 }, { timedOut: true }));
    await this.#bench.store.queue.finish(outcomes, now);
    for (const { rid } of late) {
      this.#countEnd(rid, 'failed');
      this.#forget(rid);
    }
    this.#model.ended.failed += late.length;
    // The lease has lapsed with the time that passed: what was running is taken over.
    if (this.#crawler === undefined) return;
    await this.#leaseNow(this.#crawler);
    this.#takeOver();
  }

  async #leaseNow(crawler: Crawler): Promise<Lease> {
    const owner = `process-${this.#process}`;
    const now = at(this.#second * SECOND);
    const { queue } = this.#bench.store;
    this.#lease ??= await queue.acquire(crawler.crawlerId, owner, TTL_MS, now);
    if (this.#lease === undefined) throw new Error('the lease was refused');
    await renewLease(this.#bench.store, this.#lease, TTL_MS, now);
    return this.#lease;
  }

  /**
   * A store that opens anew may have put jobs back at the time of this machine, which is earlier than the
   * times here: then they are due since then.
   */
  async #readDueOf(rids: readonly string[]): Promise<void> {
    for (const rid of rids) {
      const dueAt = (await this.#bench.store.listings.locate(rid)).job?.dueAt;
      if (dueAt === undefined) continue;
      const before = this.#due(rid);
      expect(dueAt.getTime()).toBeLessThanOrEqual(before.dueAt.getTime());
      this.#model.due.set(rid, { ...before, dueAt });
    }
  }

  /** What was running goes back to the queue, with the lease. */
  #takeOver(): void {
    for (const [rid, job] of this.#running) {
      if (this.#isPurged(rid)) continue;
      this.#model.state.set(rid, job.retry > 0 ? 'retrying' : 'waiting');
    }
    this.#running.clear();
  }

  #isPurged(rid: string): boolean {
    if (!this.#purged.has(rid)) return false;
    this.#remove(rid);
    this.#model.ended.purged += 1;
    return true;
  }

  #enter(rid: string, batch: string | undefined): void {
    if (batch === undefined) return;
    const { batches, batchOf } = this.#model;
    const counts = batches.get(batch) ?? {
      accepted: 0,
      completed: 0,
      failed: 0,
      removed: 0,
      isClosed: false,
      isCompleted: false,
    };
    counts.accepted += 1;
    batches.set(batch, counts);
    batchOf.set(rid, batch);
  }

  #countEnd(rid: string, end: 'completed' | 'failed' | 'removed'): void {
    const counts = this.#model.batches.get(this.#model.batchOf.get(rid) ?? '');
    if (counts !== undefined) counts[end] += 1;
  }

  #due(rid: string) {
    const due = this.#model.due.get(rid);
    if (due === undefined) throw new Error(`${rid} is not of the model`);
    return due;
  }

  /** A job that leaves the queue without a result, and frees its key. */
  #remove(rid: string): void {
    this.#countEnd(rid, 'removed');
    this.#forget(rid);
    const { keys } = this.#model;
    for (const [key, each] of keys) if (each.rid === rid) keys.delete(key);
  }

  #forget(rid: string): void {
    this.#model.state.delete(rid);
    this.#model.deadlines.delete(rid);
    this.#running.delete(rid);
    this.#purged.delete(rid);
  }

  async #compare(): Promise<void> {
    if (this.#crawler === undefined) return;
    const { state, ended, pushed } = this.#model;
    const counters = await this.#bench.counters(this.#crawler);
    const count = (which: string): number =>
      [...state.values()].filter((each) => each === which).length;
    expect(counters).toMatchObject({
      ...ended,
      pushed,
      waiting: count('waiting'),
      running: count('running'),
      retrying: count('retrying'),
    });
    const { waiting, running, retrying, completed, failed, deleted, purged } = counters;
    expect(waiting + running + retrying + completed + failed + deleted + purged).toBe(pushed);
    for (const [rid, expected] of state) {
      const found = await this.#bench.store.queue.find(this.#crawler.crawlerId, rid);
      expect(found?.state).toBe(expected);
    }
    for (const [name, model] of this.#model.batches) {
      const own = (which: string): number =>
        [...state].filter(([rid, each]) => each === which && this.#model.batchOf.get(rid) === name)
          .length;
      const batch = await this.#bench.store.batches.get(this.#crawler.crawlerId, name, at(0));
      expect(batch).toMatchObject({
        accepted: model.accepted,
        completed: model.completed,
        waiting: own('waiting'),
        running: own('running'),
        retrying: own('retrying'),
      });
      if (batch === undefined) throw new Error(`${name} is gone`);
      expect(failedOf(batch)).toBe(model.failed);
      expect(removedOf(batch)).toBe(model.removed);
      expect(batch.closedAt !== undefined).toBe(model.isClosed);
      expect(batch.completedAt !== undefined).toBe(model.isCompleted);
    }
    const now = at(this.#second * SECOND);
    const scheduled = [...state].filter(
      ([rid, each]) => each === 'waiting' && this.#due(rid).dueAt > now,
    );
    expect(await this.#bench.store.queue.countScheduled(this.#crawler.crawlerId, now)).toBe(
      scheduled.length,
    );
    expect((await this.#bench.store.accounts.usage(this.#crawler.accountId))?.queued).toBe(
      waiting + retrying,
    );
  }
}

/** Random lives of a crawler, compared after every step with a model of the spec's state tables. */
export function modelContract(open: OpenStore): void {
  test.each(['storage', 'webhook'] as const)(
    'a crawler of %s mode lives as the state tables say, whatever happens to it',
    async (delivery) => {
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          await using opened = await open();
          const life = new Life(opened, delivery);
          for (const step of sequence) await life.take(step);
        }),
        { numRuns: byLength(6, 25), examples: [[releasedAfterDeadline], [pushedBefore]] },
      );
    },
    120_000,
  );
}
