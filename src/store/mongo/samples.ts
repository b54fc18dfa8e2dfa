import { toWall } from '../../domain/clock.ts';
import { MINUTE_MS } from '../../domain/durations.ts';
import { addDays, type DayCounts, toDay } from '../../domain/stats.ts';
import { SAMPLE_MS, type Sample, THINNING, timelineFields } from '../../domain/timeline.ts';
import type { Collections, CountsDocument, SampleDocument } from './collections.ts';
import { COUNTS_FIELDS, sumCounts } from './counts-document.ts';

/** Crawlers that are read by one query. */
const CRAWLERS = 1_000;
/** What is thinned at most, beyond its age: more than all processes are usually stopped for. */
const WINDOW_MS = 12 * 3_600_000;

/**
 * The samples of the day as this process has last written them, by crawler; of '', the day. Of a step in
 * milliseconds, until when it has thinned samples.
 */
export type KnownSamples = Map<string, string>;

/**
 * Takes samples, if it is time, of crawlers that have changed since this process took their last one.
 */
export async function takeSamples(
  collections: Collections,
  known: KnownSamples,
  now: Date,
  goesOn: () => boolean,
): Promise<void> {
  const { samples, crawlers, counts, time } = collections;
  const wall = toWall(time, now).getTime();
  const round = new Date(Math.floor(wall / SAMPLE_MS) * SAMPLE_MS);
  // The document without a crawler says that samples were taken, and by one process.
  const { upsertedCount } = await samples.updateOne(
    { _id: sampleId('', round) },
    { $setOnInsert: { crawlerId: '', at: round, day: '', counts: {}, queued: 0 } },
    { upsert: true },
  );
  if (upsertedCount === 0) return;
  const at = new Date(Math.floor(wall / MINUTE_MS) * MINUTE_MS);
  // A day's last numbers are read when it is over.
  const day = toDay(new Date(round.getTime() - MINUTE_MS));
  if (known.get('') !== day) {
    known.clear();
    known.set('', day);
  }
  for (let after = ''; goesOn(); ) {
    const page = await crawlers
      .find({ _id: { $gt: after } }, { projection: { purges: 1 } })
      .sort({ _id: 1 })
      .limit(CRAWLERS)
      .toArray();
    const parts = await counts
      .find<CountsDocument>(
        { crawlerId: { $in: page.map(({ _id }) => _id) } },
        { projection: { ...COUNTS_FIELDS, [`days.${day}`]: 1 } },
      )
      .toArray();
    const byCrawler = Map.groupBy(parts, ({ crawlerId }) => crawlerId);
    const writes = page.flatMap(({ _id: crawlerId, purges }) => {
      const own = byCrawler.get(crawlerId) ?? [];
      const { waiting, retrying } = sumCounts(own, purges);
      const ofDay = own.flatMap(({ days }) => days?.[day] ?? []);
      const sample = { day, counts: sampledCounts(addDays(ofDay)), queued: waiting + retrying };
      const text = JSON.stringify(sample);
      const last = known.get(crawlerId);
      if (text === last || (last === undefined && ofDay.length === 0 && sample.queued === 0)) {
        return [];
      }
      known.set(crawlerId, text);
      const _id = sampleId(crawlerId, at);
      const replacement = { crawlerId, at, ...sample };
      return [{ replaceOne: { filter: { _id }, replacement, upsert: true } }];
    });
    if (writes.length > 0) await samples.bulkWrite(writes, { ordered: false });
    if (page.length < CRAWLERS) break;
    after = page.at(-1)?._id ?? '';
  }
  await thin(collections, known, round);
}

function sampledCounts(counts: DayCounts): DayCounts {
  const numbers = timelineFields.flatMap((field) => {
    const number = counts[field];
    return number === undefined ? [] : [[field, number] as const];
  });
  const { times } = counts;
  return { ...Object.fromEntries(numbers), ...(times === undefined ? {} : { times }) };
}

/** The `_id` of a crawler's sample. */
export function sampleId(crawlerId: string, at: Date): string {
  return `${crawlerId}/${at.getTime()}`;
}

/** Keeps the last sample of each step of what is old. The server removes what is older than that. */
async function thin({ samples }: Collections, known: KnownSamples, at: Date): Promise<void> {
  for (const { ageMs, stepMs } of THINNING) {
    const until = Math.floor((at.getTime() - ageMs) / stepMs) * stepMs;
    // Other processes may have thinned since this one did, and nothing is added to what is old.
    const from = Math.max(Number(known.get(String(stepMs)) ?? 0), until - WINDOW_MS);
    if (from >= until) continue;
    const old = samples
      .find(
        { at: { $gte: new Date(from), $lt: new Date(until) } },
        { projection: { crawlerId: 1, at: 1 } },
      )
      .sort({ at: -1 })
      .batchSize(CRAWLERS);
    let step = Number.NaN;
    const kept = new Set<string>();
    let removed: string[] = [];
    const remove = () => samples.deleteMany({ _id: { $in: removed } });
    // Not all at once: after a restart they are those of twelve hours.
    for await (const { _id, crawlerId, at: moment } of old) {
      const its = Math.floor(moment.getTime() / stepMs);
      if (its !== step) kept.clear();
      step = its;
      if (kept.has(crawlerId)) removed.push(_id);
      else kept.add(crawlerId);
      if (removed.length < CRAWLERS) continue;
      await remove();
      removed = [];
    }
    if (removed.length > 0) await remove();
    known.set(String(stepMs), String(until));
  }
}

/** See `StatsStore.samples`. */
export async function readSamples(
  { samples }: Collections,
  crawlerIds: readonly string[],
  since: Date,
): Promise<Map<string, Sample[]>> {
  const read = async (crawlerId: string): Promise<Sample[]> => {
    const [before, found] = await Promise.all([
      samples.findOne({ crawlerId, at: { $lt: since } }, { sort: { at: -1 } }),
      samples
        .find({ crawlerId, at: { $gte: since } })
        .sort({ at: 1 })
        .toArray(),
    ]);
    return [...(before === null ? [] : [before]), ...found].map(toSample);
  };
  return new Map(await Promise.all(crawlerIds.map(async (id) => [id, await read(id)] as const)));
}

function toSample({ at, day, counts, queued }: SampleDocument): Sample {
  return { at, day, counts, queued };
}
