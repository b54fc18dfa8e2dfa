import { setTimeout as wait } from 'node:timers/promises';
import type { RestReply } from '../call-rest.ts';
import { eventually } from '../eventually.ts';
import { NORMAL } from '../tokens.ts';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import { AGAIN_BATCH, type ChaosLoad } from './chaos-load.ts';
import { CHAOS_BATCH, isFailing, metadataOf } from './chaos-pages.ts';
import type { ChaosReceiver, ToldPush } from './chaos-receiver.ts';
import type { ChaosSite } from './chaos-site.ts';

const LEFT_RECORDS_MS = 100_000;
const LOOK_MS = 5_000;

/** The numbers of a crawler, as the service tells them. */
interface Activity {
  readonly pushed: number;
  readonly completed: number;
  readonly failed: number;
  readonly deleted: number;
  readonly purged: number;
  readonly deliveries_pending: number;
}

interface Day {
  readonly pushed: number;
  readonly success: number;
  readonly failed: number;
}

/** The parts of the statistics that have to add up. */
interface Stats {
  readonly queue: { readonly waiting: number; readonly retrying: number };
  readonly concurrency: { readonly running: number };
  readonly history: readonly Day[];
  readonly crawlers: readonly { readonly name: string; readonly activity: Activity }[];
}

/** A process that answers. */
interface Service {
  rest(method: string, path: string): Promise<RestReply>;
}

/** Requests may come this much sooner after each other than they were sent. */
const JITTER_MS = 100;
/** Processes on MongoDB agree on the time to within a second, see decision 025. */
const EARLY_MS = 1_000;

/** A sentence for each host that was asked for more than its crawler's politeness allows. */
function findImpolite({ name, politeness }: ChaosCrawler, site: ChaosSite): string[] {
  if (politeness === undefined) return [];
  const { maxPerHost, delayMs } = politeness;
  return [...site.seen(name).hosts].flatMap(([host, { most, starts }]) => {
    const gaps = starts.slice(1).map(({ toMs }, n) => toMs - (starts[n]?.fromMs ?? 0));
    const short = gaps.filter((ms) => ms < delayMs - JITTER_MS).map(Math.round);
    return [
      ...(most > maxPerHost ? [`${name}: ${most} requests at once at ${host}`] : []),
      ...(short.length > 0 ? [`${name}: requests at ${host} after ${short.join(', ')} ms`] : []),
    ];
  });
}

async function readStats(service: Service): Promise<Stats> {
  const reply = await service.rest('GET', `/crawler/${NORMAL}/stats`);
  if (reply.status !== 200) throw new Error(`stats answered ${reply.status}: ${reply.text}`);
  return reply.json as Stats;
}

/** Throws, saying what is left, unless all work has ended. */
export async function expectDrained(service: Service): Promise<void> {
  const { queue, concurrency, crawlers } = await readStats(service);
  const left = {
    waiting: queue.waiting,
    retrying: queue.retrying,
    running: concurrency.running,
    deliveries: crawlers.reduce((sum, each) => sum + each.activity.deliveries_pending, 0),
    unbalanced: crawlers.filter(({ activity }) => endsOf(activity) !== activity.pushed).length,
  };
  if (Object.values(left).some((count) => count !== 0)) throw new Error(JSON.stringify(left));
}

const endsOf = ({ completed, failed, deleted, purged }: Activity): number =>
  completed + failed + deleted + purged;

/** What the balance is made of. */
export interface BalanceParts {
  readonly services: readonly Service[];
  readonly loads: ReadonlyMap<ChaosCrawler, ChaosLoad>;
  readonly site: ChaosSite;
  readonly receiver: ChaosReceiver;
}

/**
 * Holds what clients were told against what became of it, once all work has ended. Returns one
 * sentence for each thing that is wrong.
 */
export async function findImbalances(parts: BalanceParts): Promise<string[]> {
  const { services, loads, site, receiver } = parts;
  const [first] = services;
  if (first === undefined) return ['no process runs'];
  const wrong: string[] = [];
  // Some numbers of a day are written a moment after what they count.
  await eventually(() => expectSameStats(services), {
    what: 'the same statistics everywhere',
  }).catch((error: unknown) => wrong.push(String(error)));
  const stats = await readStats(first);
  const stored = await readSettledRids(first, stats, loads.keys());
  let storedEnds = 0;
  for (const [crawler, load] of loads) {
    const { name, concurrency, delivery } = crawler;
    const activity = stats.crawlers.find((each) => each.name === name)?.activity;
    if (activity === undefined) {
      wrong.push(`${name} is gone`);
      continue;
    }
    const expected = pushesOf(load);
    const rids = [...load.rids.values(), ...load.again.values()];
    const { pushed, completed, failed, deleted, purged } = activity;
    const { most } = site.seen(name);
    if (most > concurrency)
      wrong.push(`${name}: ${most} crawls at once, the limit is ${concurrency}`);
    wrong.push(...findImpolite(crawler, site), ...findEarly(name, load, site));
    if (expected.size !== rids.length) wrong.push(`${name}: a rid was answered twice`);
    if (pushed !== rids.length) {
      wrong.push(`${name}: ${pushed} pushed by its counters, ${rids.length} acknowledged`);
    }
    const hasArrived = (rid: string): boolean =>
      delivery === 'storage' ? stored.has(rid) : receiver.acknowledged(rid) > 0;
    const arrived = rids.filter(hasArrived);
    const failures = arrived.filter((rid) => expected.get(rid)?.fails).length;
    if (delivery === 'storage') storedEnds += arrived.length;
    if (failures !== failed) {
      wrong.push(`${name}: ${failed} failed by its counters, ${failures} arrived`);
    }
    if (arrived.length - failures !== completed) {
      wrong.push(
        `${name}: ${completed} completed by its counters, ${arrived.length - failures} arrived`,
      );
    }
    if (arrived.length + deleted + purged !== rids.length) {
      const missing = deleted + purged > 0 ? [] : rids.filter((rid) => !hasArrived(rid));
      const named = missing.length === 0 ? '' : `, not ${missing.slice(0, 20).join(', ')}`;
      wrong.push(
        `${name}: of ${rids.length} acknowledged ${arrived.length} arrived, ${deleted} were deleted, ${purged} purged${named}`,
      );
    }
    const told = delivery === 'storage' ? await readTold(first, name) : receiver.told;
    wrong.push(
      ...load.faults,
      ...arrived.flatMap((rid) => toldFaults(name, rid, expected.get(rid), told(rid))),
      ...(await batchFaults(first, crawler, { activity, load, receiver })),
    );
  }
  if (storedEnds !== stored.size) {
    wrong.push(`${stored.size} results are stored, of which ${storedEnds} were acknowledged`);
  }
  wrong.push(...historyFaults(stats));
  return wrong;
}

/** A push, and what its result has to say of it. */
interface ExpectedPush extends ToldPush {
  readonly fails: boolean;
}

/** What was pushed, by its `rid`. */
function pushesOf({ rids, again }: ChaosLoad): Map<string, ExpectedPush> {
  const pushes = new Map<string, ExpectedPush>();
  for (const [n, rid] of rids) {
    const push = { metadata: metadataOf(n), fails: isFailing(n) };
    pushes.set(rid, { ...push, againOf: undefined });
    const next = again.get(rid);
    if (next !== undefined) pushes.set(next, { ...push, againOf: rid });
  }
  return pushes;
}

/** Requests for pages that were to wait. */
function findEarly(name: string, { notBefore }: ChaosLoad, site: ChaosSite): string[] {
  const { firstAt } = site.seen(name);
  return [...notBefore].flatMap(([n, from]) => {
    const early = from - (firstAt.get(n) ?? from);
    return early > EARLY_MS ? [`${name}: page ${n} was crawled ${Math.round(early)} ms early`] : [];
  });
}

function toldFaults(
  name: string,
  rid: string,
  expected: ExpectedPush | undefined,
  told: ToldPush | undefined,
): string[] {
  const textOf = (push: ToldPush | undefined): string =>
    `metadata ${push?.metadata} again of ${push?.againOf}`;
  if (textOf(told) === textOf(expected)) return [];
  return [`${name}: ${rid} came back with ${textOf(told)}, not ${textOf(expected)}`];
}

/** What the stored results of a crawler say of their pushes. */
async function readTold(service: Service, name: string) {
  const told = new Map<string, ToldPush>();
  let token = '';
  do {
    const path = `/crawler/${NORMAL}/${name}/results?page_size=200&page_token=${token}`;
    const { status, text, json } = await service.rest('GET', path);
    if (status !== 200) throw new Error(`results answered ${status}: ${text}`);
    for (const { rid, metadata, again_of: againOf } of json.results) {
      told.set(rid, { metadata, againOf });
    }
    token = encodeURIComponent(json.next_page_token);
  } while (token !== '');
  return (rid: string) => told.get(rid);
}

/**
 * Closes the batches of a crawler and compares them with its counters. Of a webhook crawler their
 * events have to arrive.
 */
async function batchFaults(
  service: Service,
  { name, delivery }: ChaosCrawler,
  parts: {
    readonly activity: Activity;
    readonly load: ChaosLoad;
    readonly receiver: ChaosReceiver;
  },
): Promise<string[]> {
  const { load, receiver } = parts;
  const { completed, failed, deleted, purged } = parts.activity;
  const sum = { completed: 0, failed: 0, removed: 0 };

  async function add(batch: string, accepted: number): Promise<void> {
    if (accepted === 0) return;
    const path = `/crawler/${NORMAL}/${name}/batches/${batch}`;
    await service.rest('POST', `${path}/close`);
    const found = await eventually(
      async () => {
        const { json, text } = await service.rest('GET', path);
        if (json.state !== 'completed') throw new Error(text);
        if (delivery === 'storage' || receiver.acknowledged(String(json.id)) > 0) return json;
        throw new Error('its event did not arrive');
      },
      { what: `the end of ${batch}` },
    );
    const ends = found.completed + found.failed + found.removed;
    if (found.accepted !== accepted || ends !== accepted) {
      throw new Error(`${batch} has ${found.accepted} accepted, ${ends} ended, of ${accepted}`);
    }
    for (const end of ['completed', 'failed', 'removed'] as const) sum[end] += found[end];
  }

  try {
    await add(CHAOS_BATCH, load.rids.size);
    await add(AGAIN_BATCH, load.again.size);
  } catch (error) {
    return [`${name}: ${error instanceof Error ? error.message : String(error)}`];
  }
  const told = JSON.stringify(sum);
  const counted = JSON.stringify({ completed, failed, removed: deleted + purged });
  return told === counted ? [] : [`${name}: its batches say ${told}, its counters ${counted}`];
}

/** Throws unless all processes give the same numbers of all crawlers. */
async function expectSameStats(services: readonly Service[]): Promise<void> {
  const all = await Promise.all(services.map(readStats));
  const texts = new Set(all.map(({ crawlers }) => JSON.stringify(crawlers)));
  if (texts.size > 1) throw new Error([...texts].join(' and '));
}

/** The days have to add up to the counters. */
function historyFaults({ history, crawlers }: Stats): string[] {
  const sumOf = (read: (day: Day) => number): number =>
    history.reduce((sum, day) => sum + read(day), 0);
  const counted = (read: (activity: Activity) => number): number =>
    crawlers.reduce((sum, each) => sum + read(each.activity), 0);
  const pairs = {
    pushed: [sumOf((day) => day.pushed), counted((each) => each.pushed)],
    success: [sumOf((day) => day.success), counted((each) => each.completed)],
    failed: [sumOf((day) => day.failed), counted((each) => each.failed)],
  };
  return Object.entries(pairs)
    .filter(([, [days, all]]) => days !== all)
    .map(([name, [days, all]]) => `history: ${days} ${name}, the counters say ${all}`);
}

/**
 * The `rid`s of all stored results, once there are no more than the counters say. Those that a
 * process has left by dying during a purge or a deletion are removed after a minute.
 */
async function readSettledRids(
  service: Service,
  { crawlers }: Stats,
  loaded: Iterable<ChaosCrawler>,
): Promise<Set<string>> {
  const storage = new Set(
    [...loaded].flatMap(({ name, delivery }) => (delivery === 'storage' ? [name] : [])),
  );
  const ended = crawlers.reduce(
    (sum, { name, activity: { completed, failed } }) =>
      sum + (storage.has(name) ? completed + failed : 0),
    0,
  );
  const until = performance.now() + LEFT_RECORDS_MS;
  for (;;) {
    const rids = await readStoredRids(service);
    if (rids.size <= ended || performance.now() > until) return rids;
    await wait(LOOK_MS);
  }
}

/** The `rid`s of all stored results. */
async function readStoredRids(service: Service): Promise<Set<string>> {
  const rids = new Set<string>();
  let query = 'scroll=true';
  for (;;) {
    const reply = await service.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000&${query}`);
    if (reply.status !== 200) throw new Error(`rids answered ${reply.status}: ${reply.text}`);
    for (const rid of reply.json.rids as string[]) rids.add(rid);
    if (reply.json.scroll_id === '') return rids;
    query = `scroll_id=${encodeURIComponent(reply.json.scroll_id)}`;
  }
}
