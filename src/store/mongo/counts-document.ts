import type { Binary, UpdateFilter } from 'mongodb';
import { mergeStreaks, type Streaks } from '../../domain/attention.ts';
import type { CrawlerMoments } from '../../domain/crawler.ts';
import { addDays, type DayCounts, toDay } from '../../domain/stats.ts';
import { type CountChanges, type Counter, counters } from '../count-changes.ts';
import type { Collections } from './collections.ts';

/**
 * A part of the counters of a crawler; the crawler's are the sum of all parts. Each process has one
 * for its turns and one for its pushes, so that no two processes write the same document. A part
 * that was not used for a while is added to the crawler's own, whose `_id` is the crawler's. All that
 * one transaction changes is in one part.
 */
export interface CountsDocument
  extends Partial<Readonly<Record<Counter, number>>>,
    Partial<Readonly<Record<'touches', number>>> {
  readonly _id: string;
  readonly crawlerId: string;
  readonly accountId?: string;
  /**
   * The crawler's `purges` that waiting and retrying jobs are counted under. Once the crawler has been
   * purged since, those jobs count as purged.
   */
  readonly gen: number;
  /**
   * The lease, or share, whose turns are counted here. The end of the lease or share removes this.
   */
  readonly epoch?: number;
  /** The session of the transactions that write this. */
  readonly session?: Binary;
  /** Of the crawler's own part: the latest sessions of transactions that write it. */
  readonly sessions?: readonly Binary[];
  /** When it was last used; absent in the crawler's own part. */
  readonly at?: Date;
  /** The last transaction that wrote it. */
  readonly tx?: string;
  readonly last?: CrawlerMoments;
  /** The tries counted here since the last success that is. */
  readonly failing?: Streaks;
  /** The days that are not in the history yet. */
  readonly days?: Readonly<Record<string, DayCounts>>;
  /** The earliest of `days`. */
  readonly firstDay?: string;
}

/** The fields that {@link sumCounts} reads. */
export const COUNTS_FIELDS = {
  crawlerId: 1,
  gen: 1,
  touches: 1,
  last: 1,
  failing: 1,
  ...(Object.fromEntries(counters.map((name) => [name, 1])) as Record<Counter, 1>),
} as const;

/** The counters of a crawler. */
export interface CountsSum extends Readonly<Record<Counter, number>> {
  readonly last: CrawlerMoments;
  readonly failing: Streaks;
}

/** Adds up the parts of a crawler that was purged `purges` times. */
export function sumCounts(parts: readonly CountsDocument[], purges: number): CountsSum {
  const sum = Object.fromEntries(counters.map((name) => [name, 0])) as Record<Counter, number>;
  let last: CrawlerMoments = {};
  for (const part of parts) {
    for (const name of counters) sum[name] += part[name] ?? 0;
    if (part.gen < purges) {
      const { waiting = 0, retrying = 0, queuedBytes = 0 } = part;
      sum.waiting -= waiting;
      sum.retrying -= retrying;
      sum.purged += waiting + retrying;
      sum.queuedBytes -= queuedBytes;
    }
    last = latest(last, part.last);
  }
  const streaks = parts.map(({ failing }) => failing);
  return { ...sum, last, failing: mergeStreaks(streaks, last) };
}

/** The later of each moment. */
export function latest(one: CrawlerMoments = {}, other: CrawlerMoments = {}): CrawlerMoments {
  const moments = Object.entries(other).filter(
    ([name, moment]) => (one[name as keyof CrawlerMoments] ?? 0) < moment,
  );
  return { ...one, ...Object.fromEntries(moments) };
}

/** The parts of crawlers, by crawler. */
export async function readParts(
  { counts }: Collections,
  crawlerIds: readonly string[],
): Promise<ReadonlyMap<string, readonly CountsDocument[]>> {
  const found = await counts
    .find<CountsDocument>({ crawlerId: { $in: [...crawlerIds] } }, { projection: COUNTS_FIELDS })
    .toArray();
  return Map.groupBy(found, ({ crawlerId }) => crawlerId);
}

/**
 * Sums over the parts of each crawler or account: of counters, and of what is at `paths`. With `where`, those
 * alone whose sums match it.
 */
export function sumParts<Name extends Counter, Path extends string = never>(
  { counts }: Pick<Collections, 'counts'>,
  owner: 'crawlerId' | 'accountId',
  names: readonly Name[],
  {
    paths,
    where,
  }: { readonly paths?: Readonly<Record<Path, string>>; readonly where?: object } = {},
) {
  const sums = [...names.map((name) => [name, name]), ...Object.entries<string>(paths ?? {})];
  const fields = Object.fromEntries(sums.map(([name, path]) => [name, { $sum: `$${path}` }]));
  return counts
    .aggregate<Readonly<{ _id: string } & Record<Name | Path, number>>>([
      { $group: { _id: `$${owner}`, ...fields } },
      ...(where === undefined ? [] : [{ $match: where }]),
    ])
    .toArray();
}

/** What parts add to a part that they become part of, which is `own`. */
export function addedParts(
  parts: readonly CountsDocument[],
  own: Pick<CountsDocument, 'last' | 'failing'> | null,
) {
  const $inc: Record<string, number> = {};
  for (const name of counters) {
    const sum = parts.reduce((all, part) => all + (part[name] ?? 0), 0);
    if (sum !== 0) $inc[name] = sum;
  }
  const days = new Map<string, DayCounts>();
  for (const part of parts) {
    for (const [day, numbers] of Object.entries(part.days ?? {})) {
      days.set(day, addDays([days.get(day) ?? {}, numbers]));
    }
  }
  for (const [day, numbers] of days) Object.assign($inc, dayIncrements(`days.${day}`, numbers));
  const firstDay = [...days.keys()].toSorted()[0];
  const last = parts.reduce((all, part) => latest(all, part.last), {} as CrawlerMoments);
  const $max = Object.fromEntries(
    Object.entries(last).map(([name, moment]) => [`last.${name}`, moment as Date]),
  );
  const failing = mergeStreaks(
    [...parts, own].map((each) => each?.failing),
    latest(last, own?.last),
  );
  return {
    failing,
    added: {
      ...(Object.keys($inc).length > 0 ? { $inc } : {}),
      ...(Object.keys($max).length > 0 ? { $max } : {}),
      ...(firstDay === undefined ? {} : { $min: { firstDay } }),
    },
  };
}

/** The increments that add the numbers of a day at a path. */
export function dayIncrements(
  path: string,
  { byCbStatus = {}, times = {}, ...fields }: DayCounts,
): Record<string, number> {
  return Object.fromEntries([
    // A day without any number has counts, too.
    [`${path}.pushed`, 0],
    ...Object.entries(fields).map(([field, n]) => [`${path}.${field}`, n]),
    ...Object.entries(byCbStatus).map(([status, n]) => [`${path}.byCbStatus.${status}`, n]),
    ...Object.entries(times).map(([bucket, n]) => [`${path}.times.${bucket}`, n]),
  ]) as Record<string, number>;
}

/** The update that writes changes which happened at `now`. */
export function countsUpdate(
  { sums, day, moments, streaks }: CountChanges,
  now: Date,
): UpdateFilter<CountsDocument> {
  const date = toDay(now);
  const $inc: Record<string, number> = {
    ...Object.fromEntries([...sums].filter(([, by]) => by !== 0)),
    ...(day === undefined ? {} : dayIncrements(`days.${date}`, day)),
  };
  const $max = Object.fromEntries([...moments].map((moment) => [`last.${moment}`, now]));
  const $min: Record<string, unknown> = day === undefined ? {} : { firstDay: date };
  const $set: Record<string, string> = {};
  const $unset: Record<string, ''> = {};
  for (const { kind, failed } of streaks) {
    const path = `failing.${kind}`;
    if (failed === undefined) $unset[path] = '';
    else {
      $inc[`${path}.count`] = failed.count;
      $min[`${path}.since`] = now;
      $max[`${path}.at`] = now;
      $set[`${path}.error`] = failed.error;
    }
  }
  const operators = Object.entries({ $inc, $max, $min, $set, $unset });
  return Object.fromEntries(operators.filter(([, changes]) => Object.keys(changes).length > 0));
}
