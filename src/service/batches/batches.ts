import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from '../../dispatcher/dispatcher.ts';
import type { TokenOwner } from '../../domain/account.ts';
import { type Batch, leftOf } from '../../domain/batch.ts';
import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { batchNotFound, missingField } from '../../domain/errors.ts';
import type { Scheduler } from '../../scheduler/scheduler.ts';
import type { Listing, ListingPart, Store } from '../../store/store.ts';
import type { CrawlerAccess } from '../crawlers/crawler-access.ts';
import type { Notices } from '../notices/outbox.ts';
import { type Removal, removeInBatches } from '../remove-in-batches.ts';
import { createStreamPlaces } from '../stream-places.ts';
import { completedEvent } from './completed-event.ts';

/** Batches of a crawler. Every method throws as {@link CrawlerAccess} does. */
export interface BatchManagement {
  list(owner: TokenOwner, crawlerName: string, part: ListingPart): Promise<Listing<Batch>>;
  /** Throws `not_found` for a name that no batch has, as the following do. */
  get(owner: TokenOwner, crawlerName: string, name: string): Promise<Batch>;
  /** Yields the batch at once, whenever it has changed and every 15 s, until it is complete. */
  watch(
    owner: TokenOwner,
    crawlerName: string,
    name: string,
    signal: AbortSignal,
  ): AsyncGenerator<Batch, void, undefined>;
  close(owner: TokenOwner, crawlerName: string, name: string): Promise<Batch>;
  /** Closes it and removes what waits. */
  cancel(owner: TokenOwner, crawlerName: string, name: string): Promise<Removal>;
  /** Completes batches of all crawlers of which nothing is left. */
  completeDone(signal: AbortSignal): Promise<void>;
}

/** What the management works with. */
export interface BatchManagementDeps {
  readonly store: Pick<Store, 'accounts' | 'batches' | 'crawlers'>;
  readonly notices: Pick<Notices, 'batchCompleted'>;
  readonly access: Pick<CrawlerAccess, 'find'>;
  readonly dispatcher: Pick<Dispatcher, 'refresh' | 'notify'>;
  readonly scheduler: Pick<Scheduler, 'wake'>;
  readonly clock: ServiceClock;
  readonly retentionDays: number;
}

/** Batches that are read at a time to be completed. */
const DONE_BATCH = 100;
/** Milliseconds between two looks at a batch that is watched, and the multiple of the last look's time. */
const WATCH_MS = 1_000;
const WATCH_FACTOR = 20;
const KEEP_ALIVE_MS = 15_000;
const LIMITS = { what: 'streams of batches', perAccount: 20, all: 500 };

/** Makes the management of batches. */
export function createBatchManagement(deps: BatchManagementDeps): BatchManagement {
  const { store, access, dispatcher, clock } = deps;
  const enter = createStreamPlaces(LIMITS);

  async function read(crawler: Crawler, name: string): Promise<Batch> {
    if (name === '') throw missingField('batch');
    const batch = await store.batches.get(crawler.crawlerId, name, clock.now());
    if (batch === undefined) throw batchNotFound(name);
    return completed(crawler, batch);
  }

  /** The batch; completed here if nothing is left of it. */
  async function completed(crawler: Crawler, batch: Batch): Promise<Batch> {
    const isDone =
      batch.closedAt !== undefined && batch.completedAt === undefined && leftOf(batch) === 0;
    if (!isDone) return batch;
    await complete(crawler, batch);
    return (await store.batches.get(crawler.crawlerId, batch.name, clock.now())) ?? batch;
  }

  async function complete(crawler: Crawler, batch: Batch): Promise<void> {
    const { crawlerId } = crawler;
    const event = deliveryModes[crawler.delivery].postsToCallback
      ? {
          record: await completedEvent(crawler, batch, wallNow(clock)),
          expiresAt: new Date(clock.now().getTime() + deps.retentionDays * DAY_MS),
        }
      : undefined;
    if (crawler.notifyBatches) await notify(crawler, batch);
    const isCompleted = await store.batches.complete(batch, event, clock.now());
    if (!isCompleted || event === undefined) return;
    dispatcher.notify(crawlerId);
    await deps.scheduler.wake('crawl', crawlerId, clock.now());
  }

  /** Before the batch counts as complete, so that a crash between loses no mail. */
  async function notify(crawler: Crawler, batch: Batch): Promise<void> {
    const account = await store.accounts.get(crawler.accountId);
    if (account !== undefined) await deps.notices.batchCompleted(account, crawler, batch);
  }

  async function close(crawler: Crawler, name: string): Promise<Batch> {
    if (name === '') throw missingField('batch');
    const batch = await store.batches.close(crawler.crawlerId, name, clock.now());
    if (batch === undefined) throw batchNotFound(name);
    return completed(crawler, batch);
  }

  return {
    async list(owner, crawlerName, part) {
      const { crawlerId } = await access.find(owner, crawlerName);
      return store.batches.list(crawlerId, part, clock.now());
    },

    async get(owner, crawlerName, name) {
      return read(await access.find(owner, crawlerName), name);
    },

    async *watch(owner, crawlerName, name, signal) {
      const crawler = await access.find(owner, crawlerName);
      using _place = enter(owner.account.accountId);
      let sent = '';
      let sentAt = 0;
      for (;;) {
        const startedAt = performance.now();
        const batch = await read(crawler, name);
        const text = JSON.stringify(batch);
        const now = performance.now();
        if (text !== sent || now - sentAt >= KEEP_ALIVE_MS) {
          yield batch;
          sent = text;
          sentAt = now;
        }
        if (batch.completedAt !== undefined) return;
        const pause = Math.max(WATCH_MS, (now - startedAt) * WATCH_FACTOR);
        await sleep(pause, undefined, { signal });
      }
    },

    async close(owner, crawlerName, name) {
      return close(await access.find(owner, crawlerName), name);
    },

    async cancel(owner, crawlerName, name) {
      const crawler = await access.find(owner, crawlerName);
      const batch = await close(crawler, name);
      const removal = await removeInBatches(async (limit) => {
        const count = await store.batches.cancel(batch, limit, clock.now());
        dispatcher.refresh(crawler.crawlerId);
        return count;
      });
      // Reading it completes it.
      if (!removal.hasMore) await read(crawler, name);
      return removal;
    },

    async completeDone(signal) {
      for (;;) {
        const done = await store.batches.done(DONE_BATCH, clock.now());
        for (const batch of done) {
          signal.throwIfAborted();
          const crawler = await store.crawlers.get(batch.crawlerId);
          if (crawler !== undefined) await complete(crawler, batch);
        }
        if (done.length < DONE_BATCH) return;
      }
    },
  };
}
