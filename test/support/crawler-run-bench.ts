import {
  type CrawlerRun,
  type CrawlerRunDeps,
  createCrawlerRun,
} from '../../src/dispatcher/crawler-run.ts';
import { createDeliveryPaces } from '../../src/dispatcher/delivery-paces.ts';
import type { DispatcherDeps, DispatchTiming } from '../../src/dispatcher/dispatcher-deps.ts';
import { createHostLanes } from '../../src/dispatcher/host-lanes.ts';
import { createOutageWarning } from '../../src/dispatcher/outage-warning.ts';
import { createRunKeeper } from '../../src/dispatcher/run-keeper.ts';
import type { Crawler } from '../../src/domain/crawler.ts';
import type { Delivery } from '../../src/domain/delivery.ts';
import type { Job, QueuedJob } from '../../src/domain/job.ts';
import { createFairPool } from '../../src/fairness/fair-pool.ts';
import { createSharedResources } from '../../src/service/crawls/shared-resources.ts';
import type { JobOutcome, Lease, Store } from '../../src/store/store.ts';
import { toDelivery, toSettlement, toStored } from '../contract/store/outcomes.ts';
import { createBench, LIMITS, makeJobs } from '../contract/store/store-harness.ts';
import { createFaultyStore, type Faults } from './faulty-store.ts';
import { silentLogger } from './loggers.ts';
import { createTestClock, type TestClock } from './test-clock.ts';

/** The times of the runs: no lease ends by itself within a test, idle runs are over soon. */
export const RUN_TIMING: DispatchTiming = {
  leaseMs: 15_000,
  renewMs: 5_000,
  turnMs: 0,
  pollMs: 5,
  idleReleaseMs: 20,
  drainMs: 10_000,
};

/** A crawl that waits for the test to end it. */
export interface StartedCrawl {
  readonly job: QueuedJob;
  readonly signal: AbortSignal;
  /** Ends it with a page, of ten bytes unless given. */
  end(body?: Uint8Array): void;
}

/** One run as a process has it. */
export interface StartedRun {
  readonly run: CrawlerRun;
  /** Settles as {@link CrawlerRun.run} does. */
  readonly done: Promise<Date | undefined>;
  /** Ends the run's task, as the closing scheduler does. */
  stop(): void;
}

/** Runs of one crawler, whose crawls and deliveries are the test's. */
export interface CrawlerRunBench {
  /** The store, with faults. */
  readonly store: Store;
  readonly faults: Faults;
  readonly clock: TestClock;
  readonly crawler: Crawler;
  /** Every crawl that was started, in order. */
  readonly crawls: StartedCrawl[];
  /** Every delivery that was posted, in order; each is acknowledged at once. */
  readonly posts: Delivery[];
  /** The debug lines of all runs: the message and the fields. */
  readonly debugLines: [message: string, fields: object][];
  /** What the dispatcher of a process of this name works with. */
  deps(processId: string, timing?: Partial<DispatchTiming>): DispatcherDeps;
  /** Starts a run in the process `first`, or in another. */
  start(
    processId?: string,
    timing?: Partial<DispatchTiming>,
    parts?: Partial<Pick<CrawlerRunDeps, 'crawler' | 'onLease'>>,
  ): StartedRun;
  /** Queues URLs and returns their `rid`s. */
  push(count: number, more?: Partial<Job>): Promise<string[]>;
  /** Takes the crawler's lease for the process `peer`. */
  takeOver(): Promise<Lease | undefined>;
}

/** Makes a bench over `origin` with a new crawler of concurrency 20. */
export async function createCrawlerRunBench(
  origin: Store,
  delivery: 'storage' | 'webhook' = 'storage',
): Promise<CrawlerRunBench> {
  const { store, faults } = createFaultyStore(origin);
  const clock = createTestClock();
  const crawler = await createBench({ store: origin }).crawler({ delivery });
  const crawls: StartedCrawl[] = [];
  const posts: Delivery[] = [];
  const debugLines: [string, object][] = [];
  const memory = createFairPool({ name: 'memory', capacity: 64 * 1024 * 1024 });
  const shared = createSharedResources(memory, 4);

  function outcomeOf(job: QueuedJob, body: Uint8Array | undefined): JobOutcome {
    const record = body === undefined ? {} : { body };
    return crawler.delivery === 'storage' ? toStored(job, record) : toDelivery(job, record);
  }

  function deps(processId: string, timing: Partial<DispatchTiming> = {}): DispatcherDeps {
    return {
      store,
      scheduler: { wake: async () => undefined, runNow: () => true },
      clock,
      logger: {
        ...silentLogger,
        debug(fields, message) {
          debugLines.push([message, fields]);
        },
      },
      processId,
      shared,
      crawlBytes: 64 * 1024,
      roomFor: () => 1_000,
      hasRoomFor: () => true,
      ackTimeoutMs: 200,
      timing: { ...RUN_TIMING, ...timing },
      crawlJob: (job, _crawler, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
          const end = (body?: Uint8Array): void =>
            resolve({ outcome: outcomeOf(job, body), held: undefined });
          crawls.push({ job, signal, end });
        }),
      async postDeliveries(_crawler, deliveries) {
        posts.push(...deliveries);
        return {
          outcomes: deliveries.map((delivery) => toSettlement(delivery, 'delivered')),
          answer: { kind: 'acknowledged', answerMs: 1 },
          isTooLong: false,
        };
      },
    };
  }

  return {
    store,
    faults,
    clock,
    crawler,
    crawls,
    posts,
    debugLines,
    deps,
    start(processId = 'first', timing = {}, parts = {}) {
      const controller = new AbortController();
      const given = deps(processId, timing);
      const { crawlerId } = crawler;
      const run = createCrawlerRun({
        ...given,
        crawlerId,
        crawler,
        task: { signal: controller.signal, touch: async () => undefined },
        paces: createDeliveryPaces({ clock, ackTimeoutMs: given.ackTimeoutMs }),
        keeper: createRunKeeper(given),
        warnOfOutage: createOutageWarning(given.logger),
        lanes: () => createHostLanes(),
        startedMs: clock.now().getTime(),
        ...parts,
      });
      return { run, done: run.run(), stop: () => controller.abort() };
    },
    async push(count, more = {}) {
      const jobs = makeJobs(crawler, count, { createdAt: clock.now(), ...more });
      const { crawlerId, accountId } = crawler;
      await origin.queue.push({ crawlerId, accountId, jobs }, LIMITS, clock.now());
      return jobs.map(({ rid }) => rid);
    },
    takeOver: () =>
      origin.queue.acquire(crawler.crawlerId, 'peer', RUN_TIMING.leaseMs, clock.now()),
  };
}
