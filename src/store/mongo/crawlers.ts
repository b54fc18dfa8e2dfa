import type { Filter } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { assertEtag } from '../../domain/crawler-etag.ts';
import { settingNames, toStoredSettings } from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { DomainError, databaseUnavailable } from '../../domain/errors.ts';
import { quotaShare, UNLIMITED } from '../crawler-quota.ts';
import { pauseChanges } from '../rules.ts';
import type { CrawlerQuota, CrawlerStore, PauseChange } from '../store.ts';
import { countCrawlers } from './account-quota.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { readParts, sumCounts } from './counts-document.ts';
import { COUNTER_FIELDS, toCounters, toCrawler, toCrawlerDocument } from './crawler-document.ts';
import { readHeldUp } from './hosts.ts';
import { createKeyedMutex } from './keyed-mutex.ts';
import type { Lanes } from './lanes.ts';
import { setWake } from './lease.ts';
import { isConflict, isDuplicate } from './mongo-errors.ts';
import { createProbes } from './probes.ts';
import { noteRemoval, sweepUp } from './removal.ts';
import { keptBytes } from './stored-bytes.ts';

/** How long a removal sweeps before it returns; `maintain` does the rest. */
const SWEEP_MS = 1_000;
/** Tries to delete a crawler that is there. */
const MOST_DELETIONS = 20;

/** Crawlers, their pauses and their counters. */
export function createCrawlers(collections: Collections, lanes: Lanes): CrawlerStore {
  const names = createKeyedMutex();
  const kept = (now: Date): Date => toWall(collections.time, now);

  async function one(filter: Filter<CrawlerDocument>): Promise<Crawler | undefined> {
    const document = await collections.crawlers.findOne(filter);
    return document === null ? undefined : toCrawler(document);
  }

  /** A crawler after a change that found it to be changed, or did not. */
  async function changedTo(document: CrawlerDocument | null, crawlerId: string) {
    const crawler = document === null ? await one({ _id: crawlerId }) : toCrawler(document);
    return crawler && { crawler, changed: document !== null };
  }

  /** Takes back what was counted in an account, unless that is gone with its counters. */
  async function uncount(accountId: string, share: CrawlerQuota): Promise<void> {
    try {
      await countCrawlers(collections, accountId, negated(share), UNLIMITED);
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'unauthenticated') throw error;
    }
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
        await uncount(accountId, share);
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
        .find({ accountId, name: { $gt: after }, ...defined({ tokenType }) })
        .sort({ name: 1 })
        .limit(limit)
        .toArray();
      return found.map(toCrawler);
    },

    async update(crawlerId, patch, now, quota = UNLIMITED, etag) {
      const { callbackUrl } = patch;
      const set = { ...toStoredSettings(patch), ...defined({ callbackUrl }), updatedAt: kept(now) };
      for (;;) {
        const before = await collections.crawlers.findOne({ _id: crawlerId });
        if (before === null) return undefined;
        assertEtag(toCrawler(before), etag);
        const { accountId, name, concurrency } = before;
        const wanted = quotaShare({ name, concurrency: patch.concurrency ?? concurrency });
        const share = {
          crawlers: 0,
          concurrency: wanted.concurrency - quotaShare(before).concurrency,
        };
        const counts = share.concurrency !== 0;
        if (counts) await countCrawlers(collections, accountId, share, { ...UNLIMITED, ...quota });
        const document = await collections.crawlers.findOneAndUpdate(
          {
            _id: crawlerId,
            ...(counts ? { concurrency } : {}),
            ...(etag === undefined ? {} : sameSettings(before)),
          },
          { $set: set },
          { returnDocument: 'after' },
        );
        if (document !== null) return toCrawler(document);
        // The crawler was changed or removed after it was read.
        if (counts) await uncount(accountId, share);
      }
    },

    async replaceSecrets(crawlerId, newest, secrets, now) {
      const document = await collections.crawlers.findOneAndUpdate(
        { _id: crawlerId, 'webhookSecrets.0.secret': newest ?? { $exists: false } },
        { $set: { webhookSecrets: secrets, updatedAt: kept(now) } },
        { returnDocument: 'after' },
      );
      return changedTo(document, crawlerId);
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
              pausedAt: pausedAt(change, kept(now)),
              pauseReason: pauseReason(change, reason),
              updatedAt: kept(now),
              wakes: { $add: ['$wakes', 1] },
            },
          },
        ],
        { returnDocument: 'after' },
      );
      if (document !== null) await setWake(collections, crawlerId);
      return changedTo(document, crawlerId);
    },

    async setHostPaused(crawlerId, host, paused, now) {
      const document = await collections.crawlers.findOneAndUpdate(
        { _id: crawlerId, pausedHosts: paused ? { $ne: host } : host },
        {
          ...(paused ? { $push: { pausedHosts: host } } : { $pull: { pausedHosts: host } }),
          $set: { updatedAt: kept(now) },
        },
        { returnDocument: 'after' },
      );
      return changedTo(document, crawlerId);
    },

    remove: (crawlerId) =>
      lanes.runExclusive(crawlerId, async () => {
        await noteRemoval(collections, crawlerId);
        const gone = await deleteCrawler(collections, crawlerId);
        if (gone === undefined) return undefined;
        // Without its parts no process writes anything more of it.
        const parts = (await readParts(collections, [crawlerId])).get(crawlerId) ?? [];
        await lanes.unblocked(crawlerId, () => collections.counts.deleteMany({ crawlerId }));
        const sum = sumCounts(parts, gone.purges);
        const purged = Math.max(0, sum.waiting + sum.retrying);
        const share = negated(quotaShare(gone));
        // Bytes that cannot be summed up in time are found when `maintain` measures what is stored.
        const kept = await keptBytes(collections, [crawlerId]).catch(() => 0);
        const counted = {
          queued: -sum.waiting - sum.retrying,
          crawlers: share.crawlers,
          concurrency: share.concurrency,
          queuedBytes: -sum.queuedBytes - sum.runningBytes,
          storedBytes: -kept,
        };
        await collections.accounts
          .updateOne({ _id: gone.accountId }, { $inc: counted })
          // `maintain` compares the totals with the remaining crawlers.
          .catch(() => undefined);
        const until = performance.now() + SWEEP_MS;
        await sweepUp(collections, crawlerId, () => performance.now() < until).catch(
          () => undefined,
        );
        return { purged };
      }),

    async counters(crawlerIds) {
      const [found, parts, heldUp] = await Promise.all([
        collections.crawlers
          .find({ _id: { $in: [...crawlerIds] } }, { projection: COUNTER_FIELDS })
          .toArray(),
        readParts(collections, crawlerIds),
        readHeldUp(collections, crawlerIds),
      ]);
      return new Map(
        found.map((each) => {
          const { _id } = each;
          return [_id, toCounters(each, parts.get(_id), heldUp.get(_id))];
        }),
      );
    },

    ...createProbes(collections),
  };
}

/**
 * Deletes a crawler, and returns what it was; undefined when it does not exist. A server that is
 * only compatible with MongoDB may find none while another command changes it (DocumentDB does), so
 * the deletion is tried again while the crawler is there.
 */
async function deleteCrawler({ crawlers }: Pick<Collections, 'crawlers'>, crawlerId: string) {
  const projection = { accountId: 1, name: 1, concurrency: 1, purges: 1 } as const;
  for (let tries = 0; tries < MOST_DELETIONS; tries += 1) {
    const gone = await crawlers.findOneAndDelete({ _id: crawlerId }, { projection });
    if (gone !== null) return gone;
    const left = await crawlers.findOne({ _id: crawlerId }, { projection: { _id: 1 } });
    if (left === null) return undefined;
  }
  throw databaseUnavailable('The crawler is changed all the time and could not be deleted.');
}

function negated({ crawlers, concurrency }: CrawlerQuota): CrawlerQuota {
  return { crawlers: -crawlers, concurrency: -concurrency };
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

/** Matches the crawler while it has the settings that it had when it was read. */
function sameSettings(before: CrawlerDocument): Filter<CrawlerDocument> {
  const names = ['callbackUrl', ...settingNames] as const;
  return Object.fromEntries(
    names.map((name) => [
      name,
      before[name] === undefined ? { $exists: false } : { $eq: before[name] },
    ]),
  );
}
