import type { Filter } from 'mongodb';
import type { Crawler, CrawlerCounters } from '../../domain/crawler.ts';
import { fromStoredSettings, toStoredSettings } from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { deliveryModes } from '../../domain/delivery-mode.ts';
import { DomainError } from '../../domain/errors.ts';
import { pauseChanges } from '../rules.ts';
import type { CrawlerQuota, CrawlerStore, PauseChange } from '../store.ts';
import { countCrawlers, quotaShare, UNLIMITED } from './account-quota.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { isConflict, isDuplicate } from './errors.ts';
import { createKeyedMutex } from './keyed-mutex.ts';
import { NO_WORK, setWake } from './lease.ts';
import type { Ledger } from './ledger.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { keptBytes } from './stored-bytes.ts';

const EPOCH = new Date(0);

/** How long a removal sweeps before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;

const settingsOnly = { days: 0, moving: 0, applied: 0, fenced: 0, pending: 0 } as const;

/** Crawlers, their pauses and their counters. */
export function createCrawlers(collections: Collections, ledger: Ledger): CrawlerStore {
  const names = createKeyedMutex();

  async function one(filter: Filter<CrawlerDocument>): Promise<Crawler | undefined> {
    const document = await collections.crawlers.findOne(filter, { projection: settingsOnly });
    return document === null ? undefined : toCrawler(document);
  }

  async function insertOrFind(
    crawler: Crawler,
    quota: CrawlerQuota,
  ): ReturnType<CrawlerStore['insert']> {
    const { accountId, name } = crawler;
    const share = quotaShare(crawler);
    for (;;) {
      const existing = await one({ accountId, name });
      if (existing !== undefined) return { crawler: existing, inserted: false };
      // Counted before the insert: `maintain` corrects the counters after a crash in between.
      await countCrawlers(collections, accountId, share, quota);
      try {
        await collections.crawlers.insertOne(toCrawlerDocument(crawler));
        return { crawler, inserted: true };
      } catch (error) {
        await countCrawlers(collections, accountId, negated(share), UNLIMITED).catch(ignoreGone);
        // Another process inserted the same name, or conflicted with the write.
        if (!isDuplicate(error) && !isConflict(error)) throw error;
      }
    }
  }

  return {
    // One at a time for each name, so that set-up scripts that create the same crawler at once do
    // not conflict in the database.
    insert: (crawler, quota = UNLIMITED) =>
      names.runExclusive(`${crawler.accountId}/${crawler.name}`, () =>
        insertOrFind(crawler, quota),
      ),

    findByName: (accountId, name) => one({ accountId, name }),
    get: (crawlerId) => one({ _id: crawlerId }),

    async list(accountId, { limit, after = '' }, tokenType) {
      const found = await collections.crawlers
        .find(
          { accountId, name: { $gt: after }, ...defined({ tokenType }) },
          { projection: settingsOnly },
        )
        .sort({ name: 1 })
        .limit(limit)
        .toArray();
      return found.map(toCrawler);
    },

    async update(crawlerId, patch, now, quota = UNLIMITED) {
      const { callbackUrl, webhookSecrets } = patch;
      const set = {
        ...toStoredSettings(patch),
        ...defined({ callbackUrl, webhookSecrets }),
        updatedAt: now,
      };
      for (;;) {
        const before = await collections.crawlers.findOne(
          { _id: crawlerId },
          { projection: { accountId: 1, name: 1, concurrency: 1 } },
        );
        if (before === null) return undefined;
        const { accountId, name, concurrency } = before;
        const wanted = quotaShare({ name, concurrency: patch.concurrency ?? concurrency });
        const share = {
          crawlers: 0,
          concurrency: wanted.concurrency - quotaShare(before).concurrency,
        };
        const counts = share.concurrency !== 0;
        if (counts) await countCrawlers(collections, accountId, share, { ...UNLIMITED, ...quota });
        const document = await collections.crawlers.findOneAndUpdate(
          { _id: crawlerId, ...(counts ? { concurrency } : {}) },
          { $set: set },
          { returnDocument: 'after', projection: settingsOnly },
        );
        if (document !== null) return toCrawler(document);
        // The crawler was changed or removed meanwhile.
        if (counts)
          await countCrawlers(collections, accountId, negated(share), UNLIMITED).catch(ignoreGone);
      }
    },

    async setPaused(crawlerId, change, now, reason) {
      const set = pauseChanges[change];
      const differs = Object.entries(set).map(([pause, paused]) => ({ [pause]: !paused }));
      const document = await collections.crawlers.findOneAndUpdate(
        { _id: crawlerId, $or: differs },
        [
          {
            $set: {
              ...set,
              pausedAt: pausedAt(change, now),
              pauseReason: pauseReason(change, reason),
              updatedAt: now,
              wakes: { $add: ['$wakes', 1] },
            },
          },
        ],
        { returnDocument: 'after', projection: settingsOnly },
      );
      if (document !== null) {
        await setWake(collections, crawlerId);
        return { crawler: toCrawler(document), changed: true };
      }
      const crawler = await one({ _id: crawlerId });
      return crawler === undefined ? undefined : { crawler, changed: false };
    },

    remove: (crawlerId) =>
      ledger.runExclusive(crawlerId, async () => {
        await noteRemoval(collections, crawlerId);
        const gone = await collections.crawlers.findOneAndDelete(
          { _id: crawlerId },
          {
            projection: {
              accountId: 1,
              name: 1,
              concurrency: 1,
              live: 1,
              liveBytes: 1,
              running: 1,
            },
          },
        );
        if (gone === null) return undefined;
        const purged = gone.live - gone.running;
        const share = negated(quotaShare(gone));
        // Bytes that cannot be summed up in time are found when `maintain` measures what is stored.
        const kept = await keptBytes(collections, [crawlerId]).catch(() => 0);
        const counted = {
          queued: -purged,
          crawlers: share.crawlers,
          concurrency: share.concurrency,
          queuedBytes: -(gone.liveBytes ?? 0),
          storedBytes: -kept,
        };
        await collections.accounts
          .updateOne({ _id: gone.accountId }, { $inc: counted })
          // `maintain` compares the totals with the remaining crawlers.
          .catch(() => undefined);
        const until = performance.now() + SWEEP_MS;
        await ledger.tidy(crawlerId, () =>
          sweepUp(collections, crawlerId, () => performance.now() < until),
        );
        return { purged };
      }),

    async counters(crawlerIds) {
      const found = await collections.crawlers
        .find({ _id: { $in: [...crawlerIds] } }, { projection: countersOnly })
        .toArray();
      return new Map(found.map((document) => [document._id, toCounters(document)]));
    },

    async claimProbes(now, intervalMs, limit) {
      await scheduleFirstProbes(collections, now, intervalMs);
      const due = await collections.crawlers
        .find({ probeAt: { $lte: now } }, { projection: { _id: 1 } })
        .sort({ probeAt: 1 })
        .limit(limit)
        .toArray();
      if (due.length === 0) return [];
      const ids = due.map((each) => each._id);
      const probeAt = new Date(now.getTime() + intervalMs);
      const probeClaim = ledger.newWriteId();
      const move = { $set: { probeAt, probeClaim, 'last.probe': now } };
      await collections.crawlers.updateMany({ _id: { $in: ids }, probeAt: { $lte: now } }, move);
      const own = { _id: { $in: ids }, probeClaim };
      const urls = await collections.crawlers
        .find(own, { projection: { callbackUrl: 1 } })
        .toArray();
      const callbackUrl = { $in: urls.map((each) => each.callbackUrl) };
      // Crawlers that have the same URL but are due later, or were claimed by another caller at the
      // same moment, get the same result.
      await collections.crawlers.updateMany(
        { callbackUrl, probeAt: { $gt: EPOCH, $lt: probeAt } },
        move,
      );
      const claimed = await collections.crawlers
        .find({ callbackUrl, probeAt: { $gt: EPOCH }, probeClaim }, { projection: settingsOnly })
        .toArray();
      return claimed.map(toCrawler);
    },
  };
}

/**
 * Schedules new crawlers with the next probe of their URL if that is known, else at a random moment
 * within the first interval, so that probes are spread evenly.
 */
async function scheduleFirstProbes(
  collections: Collections,
  now: Date,
  intervalMs: number,
): Promise<void> {
  const fresh = await collections.crawlers
    .find({ probeAt: EPOCH }, { projection: { callbackUrl: 1 } })
    .limit(1_000)
    .toArray();
  if (fresh.length === 0) return;
  const callbackUrl = { $in: [...new Set(fresh.map((each) => each.callbackUrl))] };
  const known = await collections.crawlers
    .find({ callbackUrl, probeAt: { $gt: EPOCH } }, { projection: { callbackUrl: 1, probeAt: 1 } })
    .toArray();
  const next = new Map(known.map((each) => [each.callbackUrl, each.probeAt]));
  const moves = fresh.map(({ _id, callbackUrl: url }) => {
    const random = new Date(now.getTime() + Math.floor(Math.random() * intervalMs));
    const probeAt = next.get(url) ?? random;
    next.set(url, probeAt);
    return { updateOne: { filter: { _id, probeAt: EPOCH }, update: { $set: { probeAt } } } };
  });
  await collections.crawlers.bulkWrite(moves, { ordered: false });
}

function negated({ crawlers, concurrency }: CrawlerQuota): CrawlerQuota {
  return { crawlers: -crawlers, concurrency: -concurrency };
}

/** Ignores that the account was removed, because its counters went with it. */
function ignoreGone(error: unknown): void {
  if (!(error instanceof DomainError) || error.kind !== 'unauthenticated') throw error;
}

// While both pauses hold, the user's is the one that is shown.
function pausedAt(change: PauseChange, now: Date) {
  if (change === 'user_unpause') return '$$REMOVE';
  const pauses = change === 'user_pause' || change === 'monitor_pause';
  return { $cond: ['$pausedByUser', '$pausedAt', pauses ? now : '$$REMOVE'] };
}

function pauseReason(change: PauseChange, reason: string | undefined) {
  if (change === 'user_pause') return '$pauseReason';
  return change === 'monitor_pause' && reason !== undefined ? { $literal: reason } : '$$REMOVE';
}

const countersOnly = {
  live: 1,
  running: 1,
  retrying: 1,
  completed: 1,
  failed: 1,
  deleted: 1,
  purged: 1,
  deliveriesPending: 1,
  last: 1,
} as const;

function toCounters(document: CrawlerDocument): CrawlerCounters {
  const { live, running, retrying, completed, failed, deleted, purged } = document;
  return {
    waiting: live - running - retrying,
    running,
    retrying,
    pushed: live + completed + failed + deleted + purged,
    completed,
    failed,
    deleted,
    purged,
    deliveriesPending: document.deliveriesPending,
    last: document.last ?? {},
  };
}

function toCrawlerDocument(crawler: Crawler): CrawlerDocument {
  const { crawlerId, callbackUrl, ...others } = crawler;
  return {
    ...others,
    ...toStoredSettings(crawler),
    _id: crawlerId,
    callbackUrl: callbackUrl ?? null,
    ...(deliveryModes[crawler.delivery].postsToCallback ? { probeAt: EPOCH } : {}),
    live: 0,
    liveBytes: 0,
    running: 0,
    runningBytes: 0,
    retrying: 0,
    completed: 0,
    failed: 0,
    deleted: 0,
    purged: 0,
    deliveriesPending: 0,
    days: {},
    applied: {},
    pending: [],
    moves: 0,
    recounts: 0,
    purges: 0,
    epoch: 0,
    leaseOwner: null,
    leaseUntil: EPOCH,
    wakeAt: NO_WORK,
    wakes: 0,
  };
}

function toCrawler(document: CrawlerDocument): Crawler {
  return {
    crawlerId: document._id,
    accountId: document.accountId,
    name: document.name,
    tokenType: document.tokenType,
    delivery: document.delivery,
    callbackUrl: document.callbackUrl ?? undefined,
    ...fromStoredSettings(document),
    pausedByUser: document.pausedByUser,
    pausedByMonitor: document.pausedByMonitor,
    ...defined({ pausedAt: document.pausedAt, pauseReason: document.pauseReason }),
    webhookSecrets: document.webhookSecrets,
    createdAt: document.createdAt,
    updatedAt: document.updatedAt,
  };
}
