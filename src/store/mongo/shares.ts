import type { Filter } from 'mongodb';
import { isShare, type ShareStore, type Sharing } from '../share-store.ts';
import type { Lease } from '../store.ts';
import type { Collections, CrawlerDocument } from './collections.ts';
import type { ShareDocument } from './crawler-document.ts';
import { findIds } from './find-ids.ts';
import { currentLease } from './lease.ts';

/** The fields of a crawler that say how it is shared. */
export const SHARING_FIELDS = { shares: 1, joins: 1, sharesRevision: 1, wantsHelp: 1 } as const;

/** How many crawlers that want a process are divided among their accounts. */
const MOST_WANTED = 1_000;
/** A process that runs a crawler that falls due has its lease before that. */
const LATE_MS = 500;

/** A crawler with its shares. */
export type SharedDocument = Pick<CrawlerDocument, keyof typeof SHARING_FIELDS>;

type WantedDocument = Pick<
  CrawlerDocument,
  '_id' | 'accountId' | 'wantsHelp' | 'wakeAt' | 'politeness'
>;

/** Shares of crawlers, each in its crawler's document. */
export function createShares({ crawlers }: Collections): ShareStore {
  /** Which process leads the pace groups of these crawlers; nothing of a group without a lead. */
  async function leadsOfGroups(
    waiting: readonly WantedDocument[],
    now: Date,
  ): Promise<Map<string, string | null>> {
    const grouped = waiting.filter(({ politeness }) => politeness?.group !== undefined);
    if (grouped.length === 0) return new Map();
    const led = await crawlers
      .find(
        {
          accountId: { $in: [...new Set(grouped.map(({ accountId }) => accountId))] },
          'politeness.group': { $in: [...new Set(grouped.map(groupName))] },
          leaseOwner: { $ne: null },
          leaseUntil: { $gt: now },
        },
        { projection: { accountId: 1, 'politeness.group': 1, leaseOwner: 1 } },
      )
      .toArray();
    return new Map(led.map((each) => [groupOf(each), each.leaseOwner]));
  }

  return {
    async wanted(limit, processId, now) {
      const late = new Date(now.getTime() - LATE_MS);
      const found = await crawlers
        .aggregate<WantedDocument>([
          { $match: { $or: [{ wantsHelp: true }, { wakeAt: { $lte: late } }] } },
          { $sample: { size: MOST_WANTED } },
          { $project: { accountId: 1, wantsHelp: 1, wakeAt: 1, 'politeness.group': 1 } },
        ])
        .toArray();
      const helper = found.filter(({ wantsHelp }) => wantsHelp);
      const waiting = found.filter(({ wakeAt }) => wakeAt <= late);
      const leads = await leadsOfGroups(waiting, now);
      const ledBy = (owner: string | undefined) =>
        inTurn(waiting.filter((each) => leads.get(groupOf(each)) === owner)).slice(0, limit);
      return {
        helper: inTurn(helper).slice(0, limit),
        lead: ledBy(undefined),
        grouped: ledBy(processId),
      };
    },

    async join(crawlerId, processId, room, ttlMs, now) {
      const read: (SharedDocument & Pick<CrawlerDocument, 'wakes'>) | null = await crawlers.findOne(
        { _id: crawlerId, wantsHelp: true },
        { projection: { ...SHARING_FIELDS, wakes: 1 } },
      );
      const had = Object.values(read?.shares ?? {}).some((each) => each.processId === processId);
      if (read === null || had) return undefined;
      const shareId = (read.joins ?? 0) + 1;
      const until = new Date(now.getTime() + ttlMs);
      const none = { slots: 0, digits: '', heldSlots: 0, heldDigits: '', awaits: false };
      const { matchedCount } = await crawlers.updateOne(
        { _id: crawlerId, wantsHelp: true, ...isRevision(read.sharesRevision ?? 0) },
        {
          $set: { joins: shareId, [path(shareId)]: { processId, until, room, ...none } },
          $inc: { sharesRevision: 1 },
        },
      );
      if (matchedCount === 0) return undefined;
      return { crawlerId, owner: processId, epoch: -shareId, until, work: read.wakes };
    },

    async give(lease, { revision, wantsHelp, shares }, now) {
      const given = shares.flatMap(({ shareId, slots, digits, heldSlots, heldDigits, awaits }) =>
        Object.entries({ slots, digits, heldSlots, heldDigits, awaits }).map(
          ([field, value]) => [`${path(shareId)}.${field}`, value] as const,
        ),
      );
      const { matchedCount } = await crawlers.updateOne(
        { ...currentLease(lease, now), ...isRevision(revision) },
        {
          $set: { ...Object.fromEntries(given), ...(wantsHelp ? { wantsHelp } : {}) },
          $inc: { sharesRevision: 1 },
          ...(wantsHelp ? {} : { $unset: { wantsHelp: '' } }),
        },
      );
      return matchedCount === 0 ? undefined : revision + 1;
    },

    async endOf(processId, now) {
      // The index of wake times has the leased ones at the ends of their leases.
      const led = { wakeAt: { $gt: now }, leaseOwner: processId };
      const crawlerIds = await findIds(crawlers, led);
      await crawlers.updateMany(
        { _id: { $in: crawlerIds }, leaseOwner: processId },
        { $set: { leaseUntil: now, wakeAt: now } },
      );
      const shared: (SharedDocument & Pick<CrawlerDocument, '_id'>)[] = await crawlers
        .find({ shares: { $exists: true, $ne: {} } }, { projection: { shares: 1 } })
        .toArray();
      const ends = shared.flatMap(({ _id, shares = {} }) =>
        Object.entries(shares).flatMap(([shareId, share]) => {
          if (share.processId !== processId) return [];
          const at = path(Number(shareId));
          const filter = { _id, [`${at}.processId`]: processId };
          return [{ updateOne: { filter, update: { $min: { [`${at}.until`]: now } } } }];
        }),
      );
      if (ends.length > 0) await crawlers.bulkWrite(ends, { ordered: false });
      return { crawlerIds, shares: ends.length };
    },

    async keepTo(lease, { slots, digits, heldDigits, room }, now) {
      const share = path(-lease.epoch);
      const given = { [`${share}.slots`]: { $lte: slots }, [`${share}.digits`]: digits };
      await crawlers.updateOne(
        { ...currentLease(lease, now), ...given },
        {
          $set: {
            [`${share}.heldSlots`]: slots,
            [`${share}.heldDigits`]: heldDigits,
            [`${share}.room`]: room,
          },
          $inc: { sharesRevision: 1 },
        },
      );
    },
  };
}

function groupName({ politeness }: Pick<CrawlerDocument, 'politeness'>): string | undefined {
  return politeness?.group;
}

/** The key of a crawler's pace group; the same for all crawlers of an account that have none. */
function groupOf(crawler: Pick<CrawlerDocument, 'accountId' | 'politeness'>): string {
  return `${crawler.accountId} ${groupName(crawler) ?? ''}`;
}

/** One crawler of each account in turn, in a random order. */
function inTurn(crawlers: readonly Pick<CrawlerDocument, '_id' | 'accountId'>[]): string[] {
  const ofAccount = Map.groupBy(shuffled(crawlers), ({ accountId }) => accountId);
  const queues = [...ofAccount.values()];
  const rounds = Math.max(0, ...queues.map((each) => each.length));
  return Array.from({ length: rounds }, (_, round) =>
    queues.flatMap((each) => each[round]?._id ?? []),
  ).flat();
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .sort((left, right) => left.at - right.at)
    .map(({ item }) => item);
}

/** Matches a crawler whose shares are those of that revision; 0 of one that was never shared. */
function isRevision(revision: number): Filter<CrawlerDocument> {
  return { sharesRevision: revision === 0 ? { $exists: false } : revision };
}

function path(shareId: number): `shares.${number}` {
  return `shares.${shareId}`;
}

/** How the crawler is shared; undefined if it never was. */
export function toSharing({
  shares = {},
  sharesRevision,
  wantsHelp,
}: SharedDocument): Sharing | undefined {
  if (sharesRevision === undefined) return undefined;
  return {
    revision: sharesRevision,
    wantsHelp: wantsHelp === true,
    shares: Object.entries(shares).map(([shareId, { until: _until, awaits = false, ...share }]) => {
      return { shareId: Number(shareId), ...share, awaits };
    }),
  };
}

/** The share that a helper's lease is for, if the crawler still has it. */
export function shareOf(
  { shares = {} }: SharedDocument,
  { epoch, owner }: Lease,
): ShareDocument | undefined {
  const share = shares[String(-epoch)];
  return share?.processId === owner ? share : undefined;
}

/**
 * The epochs of former holders, under the lead's `epoch` and without the helpers of `crawler`. A
 * helper that joined after the crawler was read is not one of them.
 */
export function formerEpochs({ shares = {}, joins = 0 }: SharedDocument, epoch: number): object {
  const helpers = Object.keys(shares).map((shareId) => -Number(shareId));
  return { $lt: epoch, $gte: -joins, ...(helpers.length > 0 ? { $nin: helpers } : {}) };
}

/** Renews the shares of helpers that have not lapsed. A renewal that arrives late shortens none. */
export async function renewShares(
  { crawlers }: Collections,
  leases: readonly Lease[],
  now: Date,
  until: Date,
): Promise<void> {
  const held = leases.filter(isShare);
  if (held.length === 0) return;
  await crawlers.bulkWrite(
    held.map((lease) => ({
      updateOne: {
        filter: currentLease(lease, now),
        update: { $max: { [`${path(-lease.epoch)}.until`]: until } },
      },
    })),
    { ordered: false },
  );
}

/**
 * Ends the shares of the crawler that have lapsed, after which their helpers write nothing more.
 * Returns whether there were any.
 */
export async function endLapsedShares(
  { crawlers }: Collections,
  { _id, shares = {} }: SharedDocument & Pick<CrawlerDocument, '_id'>,
  now: Date,
): Promise<boolean> {
  const lapsed = Object.entries(shares).filter(([, { until }]) => until <= now);
  for (const [shareId, { until }] of lapsed) {
    const share = path(Number(shareId));
    await crawlers.updateOne({ _id, [`${share}.until`]: { $lte: now } }, removal(share, until));
  }
  return lapsed.length > 0;
}

/** Ends a helper's share. Returns false if it had ended already. */
export async function endShare(
  { crawlers }: Collections,
  lease: Lease,
  now: Date,
): Promise<boolean> {
  const share = path(-lease.epoch);
  const held = { _id: lease.crawlerId, [`${share}.processId`]: lease.owner };
  return (await crawlers.updateOne(held, removal(share, now))).matchedCount > 0;
}

function removal(share: string, crawledUntil: Date) {
  return {
    $unset: { [share]: '' as const },
    $inc: { sharesRevision: 1 },
    $max: { crawledUntil },
  };
}
