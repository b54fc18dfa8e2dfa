import { setTimeout as wait } from 'node:timers/promises';
import type { RestReply } from '../call-rest.ts';
import { eventually } from '../eventually.ts';
import { NORMAL } from '../tokens.ts';
import type { ChaosCrawler } from './chaos-crawlers.ts';
import { CHAOS_BATCH, type ChaosLoad } from './chaos-load.ts';
import type { ChaosReceiver } from './chaos-receiver.ts';
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

/** A sentence for each host that was asked for more than its crawler's politeness allows. */
function findImpolite({ name, politeness }: ChaosCrawler, site: ChaosSite): string[] {
  if (politeness === undefined) return [];
  const { maxPerHost, delayMs } = politeness;
  return [...site.seen(name).hosts].flatMap(([host, { most, startsMs }]) => {
    const gaps = startsMs.slice(1).map((at, n) => at - (startsMs[n] ?? at));
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
    const rids = [...load.rids.values()];
    const { pushed, completed, failed, deleted, purged } = activity;
    const { most } = site.seen(name);
    if (most > concurrency)
      wrong.push(`${name}: ${most} crawls at once, the limit is ${concurrency}`);
    wrong.push(...findImpolite(crawler, site));
    if (new Set(rids).size !== rids.length) wrong.push(`${name}: a rid was answered twice`);
    if (pushed !== rids.length) {
      wrong.push(`${name}: ${pushed} pushed by its counters, ${rids.length} acknowledged`);
    }
    if (failed > 0) wrong.push(`${name}: ${failed} failed`);
    const hasArrived = (rid: string): boolean =>
      delivery === 'storage' ? stored.has(rid) : receiver.acknowledged(rid) > 0;
    const arrived = rids.filter(hasArrived).length;
    if (delivery === 'storage') storedEnds += arrived;
    if (arrived !== completed) {
      wrong.push(`${name}: ${completed} completed by its counters, ${arrived} arrived`);
    }
    if (arrived + deleted + purged !== rids.length) {
      const missing = deleted + purged > 0 ? [] : rids.filter((rid) => !hasArrived(rid));
      const named = missing.length === 0 ? '' : `, not ${missing.slice(0, 20).join(', ')}`;
      wrong.push(
        `${name}: of ${rids.length} acknowledged ${arrived} arrived, ${deleted} were deleted, ${purged} purged${named}`,
      );
    }
    wrong.push(...load.faults, ...(await batchFaults(first, crawler, activity, receiver)));
  }
  if (storedEnds !== stored.size) {
    wrong.push(`${stored.size} results are stored, of which ${storedEnds} were acknowledged`);
  }
  wrong.push(...historyFaults(stats));
  return wrong;
}

/**
 * Closes the batch of a crawler and compares it with the counters. Of a webhook crawler its event has
 * to arrive.
 */
async function batchFaults(
  service: Service,
  { name, delivery }: ChaosCrawler,
  { pushed, completed, deleted, purged }: Activity,
  receiver: ChaosReceiver,
): Promise<string[]> {
  const path = `/crawler/${NORMAL}/${name}/batches/${CHAOS_BATCH}`;
  const expected = `completed: ${pushed} = ${completed} + ${deleted + purged}`;
  try {
    await service.rest('POST', `${path}/close`);
    await eventually(
      async () => {
        const { json } = await service.rest('GET', path);
        const told = `${json.state}: ${json.accepted} = ${json.completed} + ${json.removed}`;
        if (told !== expected) throw new Error(told);
        if (delivery === 'storage' || receiver.acknowledged(String(json.id)) > 0) return;
        throw new Error('its event did not arrive');
      },
      { what: expected },
    );
    return [];
  } catch (error) {
    return [`${name}: its batch is not ${expected}: ${String(error)}`];
  }
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
  const completed = crawlers.reduce(
    (sum, { name, activity }) => sum + (storage.has(name) ? activity.completed : 0),
    0,
  );
  const until = performance.now() + LEFT_RECORDS_MS;
  for (;;) {
    const rids = await readStoredRids(service);
    if (rids.size <= completed || performance.now() > until) return rids;
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
