import type { Filter } from 'mongodb';
import { toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import { assertEtag } from '../../domain/crawler-etag.ts';
import { toStoredSettings } from '../../domain/crawler-settings.ts';
import { defined } from '../../domain/defined.ts';
import { DomainError } from '../../domain/errors.ts';
import {
  type CrawlerChange,
  changedAt,
  hostPauseChange,
  pauseChange,
  secretsChange,
} from '../crawler-changes.ts';
import { quotaShare, UNLIMITED } from '../crawler-quota.ts';
import type { CrawlerQuota, CrawlerStore } from '../store.ts';
import { countCrawlers } from './account-quota.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import { readParts, sumCounts } from './counts-document.ts';
import { COUNTER_FIELDS, toCounters, toCrawler, toCrawlerDocument } from './crawler-document.ts';
import { deleteOne } from './delete-batch.ts';
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
/** What a removal has to know of the crawler. */
const REMOVED_FIELDS = { accountId: 1, name: 1, concurrency: 1, purges: 1 };

/** Crawlers, their pauses and their counters. */
export function createCrawlers(collections: Collections, lanes: Lanes): CrawlerStore {
  const names = createKeyedMutex();
  const kept = (now: Date): Date => toWall(collections.time, now);

  async function one(filter: Filter<CrawlerDocument>): Promise<Crawler | undefined> {
    const document = await collections.crawlers.findOne(filter);
    return document === null ? undefined : toCrawler(document);
  }

  /** Changes what is not a setting. The runs of the crawler are told. */
  async function change(crawlerId: string, to: CrawlerChange, now: Date) {
    for (;;) {
      const crawler = await one({ _id: crawlerId });
      if (crawler === undefined) return undefined;
      const next = to(crawler, kept(now));
      if (next === undefined) return { crawler, changed: false };
      const { matchedCount } = await collections.crawlers.updateOne(
        sameVersion(crawler),
        replacing(next),
      );
      if (matchedCount > 0) return { crawler: next, changed: true };
    }
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
      const set = { ...toStoredSettings(patch), ...defined({ callbackUrl }) };
      for (;;) {
        const before = await one({ _id: crawlerId });
        if (before === undefined) return undefined;
        assertEtag(before, etag);
        const { accountId } = before;
        const wanted = quotaShare({ ...before, ...patch });
        const share = {
          crawlers: 0,
          concurrency: wanted.concurrency - quotaShare(before).concurrency,
        };
        const counts = share.concurrency !== 0;
        if (counts) await countCrawlers(collections, accountId, share, { ...UNLIMITED, ...quota });
        const document = await collections.crawlers.findOneAndUpdate(
          sameVersion(before),
          { $set: { ...set, updatedAt: changedAt(before, kept(now)) } },
          { returnDocument: 'after' },
        );
        if (document !== null) return toCrawler(document);
        // The crawler was changed or removed after it was read.
        if (counts) await uncount(accountId, share);
      }
    },

    replaceSecrets: (crawlerId, newest, secrets, now) =>
      change(crawlerId, secretsChange(newest, secrets), now),

    async setPaused(crawlerId, to, now, reason) {
      const changed = await change(crawlerId, pauseChange(to, reason), now);
      if (changed?.changed === true) await setWake(collections, crawlerId);
      return changed;
    },

    setHostPaused: (crawlerId, host, paused, now) =>
      change(crawlerId, hostPauseChange(host, paused), now),

    remove: (crawlerId) =>
      lanes.runExclusive(crawlerId, async () => {
        await noteRemoval(collections, crawlerId);
        const gone = await deleteOne(collections.crawlers, crawlerId, REMOVED_FIELDS);
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

function negated({ crawlers, concurrency }: CrawlerQuota): CrawlerQuota {
  return { crawlers: -crawlers, concurrency: -concurrency };
}

/** Matches the crawler unless it has changed since it was read. */
function sameVersion({ crawlerId, updatedAt }: Pick<Crawler, 'crawlerId' | 'updatedAt'>) {
  return { _id: crawlerId, updatedAt };
}

/** The write of what a {@link CrawlerChange} changes. */
function replacing(next: Crawler) {
  const { pausedByUser, pausedByMonitor, webhookSecrets, updatedAt } = next;
  const optional = Object.entries({
    pausedAt: next.pausedAt,
    pauseReason: next.pauseReason,
    pausedHosts: next.pausedHosts,
  });
  const absent = optional.filter(([, value]) => value === undefined);
  const $set = { pausedByUser, pausedByMonitor, webhookSecrets, updatedAt };
  return {
    $set: { ...$set, ...defined(Object.fromEntries(optional)) },
    ...(absent.length === 0
      ? {}
      : { $unset: Object.fromEntries(absent.map(([name]) => [name, '' as const])) }),
    $inc: { wakes: 1 },
  };
}
