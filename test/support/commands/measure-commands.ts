import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import type { ReceiverAnswer } from '../receiver.ts';
import { readMetric } from '../service-process.ts';
import type { Site } from '../site.ts';
import { NORMAL } from '../tokens.ts';
import {
  type CommandCounts,
  type CountedProcess,
  commandsBetween,
  totalOf,
} from './counted-process.ts';

/** Commands of a process in relation to what it did. */
export interface CommandFigure {
  /** Commands for each unit: a URL, or a second. */
  readonly perUnit: number;
  /** The same without what a process sends that has nothing to do. */
  readonly aboveIdle: number;
  /** How many units were measured. */
  readonly units: number;
  /** How long they took, in seconds. */
  readonly seconds: number;
  /** What was sent, most often first. */
  readonly commands: CommandCounts;
}

/** Where the commands are measured. */
export interface CommandBench {
  readonly service: CountedProcess;
  readonly site: Site;
  /** A callback URL that answers, for webhook crawlers. */
  readonly hook: string;
  /** What the service sends when it has nothing to do, of `commandsWhenIdle`. */
  readonly idle: CommandFigure;
}

/** What all of them have sent. */
async function commandsOfAll(services: readonly CountedProcess[]): Promise<CommandCounts> {
  const all = new Map<string, number>();
  for (const counts of await Promise.all(services.map((each) => each.commands()))) {
    for (const [name, count] of Object.entries(counts)) all.set(name, (all.get(name) ?? 0) + count);
  }
  return Object.fromEntries(all);
}

/** The interval of the upkeep. */
const UPKEEP_SECONDS = 5;

/**
 * Waits until the service, the only one on its database, has done its upkeep once more. From one to
 * another each window has as much of it as an idle process.
 */
async function nextUpkeep(service: CountedProcess): Promise<void> {
  const count = async (): Promise<number> => (await service.commands())['find removals'] ?? 0;
  const before = await count();
  await until('the upkeep', async () => (await count()) > before);
  // The other tasks of this interval have the same time, more or less.
  await wait(1_000);
}

/**
 * The looks for tasks that are due. A timer makes them, ten a second and fewer on a busy machine, so
 * none of them belongs to a URL.
 */
function looksIn(commands: CommandCounts): number {
  return commands['distinct agenda_jobs'] ?? 0;
}

/** Counts what is sent until the returned function is called, which makes a figure of it. */
async function startCounting(services: readonly CountedProcess[], idle?: CommandFigure) {
  const before = await commandsOfAll(services);
  const startedAt = performance.now();
  return async (unitsAfter: (seconds: number) => number): Promise<CommandFigure> => {
    const commands = commandsBetween(before, await commandsOfAll(services));
    const seconds = (performance.now() - startedAt) / 1_000;
    const units = unitsAfter(seconds);
    const untimed = totalOf(commands) - looksIn(commands);
    const idlePerSecond =
      idle === undefined ? 0 : idle.perUnit - looksIn(idle.commands) / idle.units;
    const aboveIdle = (untimed - seconds * idlePerSecond * services.length) / units;
    return { perUnit: totalOf(commands) / units, aboveIdle, units, seconds, commands };
  };
}

/** The answer of a receiver that only acknowledges. */
export const ACKNOWLEDGE: ReceiverAnswer = { status: 204 };

const PUSHED_AT_ONCE = 1_000;
const MOST_MS = 180_000;

/** Settings that the figures are measured with: rates are on, and never met. */
export const COMMAND_SETTINGS = {
  PUSH_RATE_PER_SECOND: '100000',
  ACCOUNT_REQUESTS_PER_SECOND: '0',
  CRAWL_TIMEOUT_SECONDS: '600',
};

async function post(service: CountedProcess, path: string, body: object): Promise<void> {
  const reply = await service.rest('POST', `/crawler/${NORMAL}${path}`, body);
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
}

async function pushAll(service: CountedProcess, name: string, urls: string[]): Promise<void> {
  for (let from = 0; from < urls.length; from += PUSHED_AT_ONCE) {
    const items = urls.slice(from, from + PUSHED_AT_ONCE).map((url) => ({ url }));
    await post(service, `/${name}/push_batch`, { items });
  }
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(
    async () => {
      if (!(await isSo())) throw new Error('not yet');
    },
    { timeoutMs: MOST_MS, what },
  );
}

const activeCrawlers = (service: CountedProcess): Promise<number> =>
  readMetric(service, 'queued_crawler_active', 'kind="crawlers"');

/** Between 0.5 and 1.5, evenly: pages that all took the same time would end together, in batches. */
const spread = (n: number): number => 0.5 + ((n * 0.618034) % 1);

/**
 * Commands per URL of a crawler that is busy throughout: `urls` pages that take `pageMs` on average,
 * crawled out of a backlog. Pushes are not counted.
 */
export async function commandsPerUrl(
  { service, site, hook, idle }: CommandBench,
  options: {
    readonly pageMs: number;
    readonly concurrency: number;
    readonly urls: number;
    readonly delivery?: 'storage' | 'webhook';
    /** Further processes on the database; what is measured begins when each has its share. */
    readonly helpers?: readonly CountedProcess[];
  },
): Promise<CommandFigure> {
  const { pageMs, concurrency, urls, delivery = 'storage', helpers = [] } = options;
  const name = `${delivery}-${pageMs}-${concurrency}-${site.hits()}`;
  const callback = delivery === 'webhook' ? { callback_url: hook } : {};
  await post(service, '', { name, concurrency, ...callback });
  await post(service, `/${name}/pause`, {});
  const settling = helpers.length > 0 ? 10 * concurrency : 0;
  const lead = settling + Math.max(2 * concurrency, Math.ceil(urls / 10));
  const all = urls + 2 * lead;
  const path = (n: number): string =>
    `${site.url}/page/${name}-${n}?delay=${Math.round(pageMs * spread(n))}`;
  await pushAll(
    service,
    name,
    Array.from({ length: all }, (_, n) => path(n)),
  );
  const from = site.hits();
  const ended = (): number => site.hits() - from - site.concurrent;
  await post(service, `/${name}/unpause`, {});
  await until('a crawler that has got going', () => ended() >= lead - settling);
  await until('a share for each process', async () => {
    const { json } = await service.rest('GET', `/crawler/${NORMAL}/${name}`);
    return json.processes.length === helpers.length + 1;
  });
  const endedBefore = ended();
  const figureOf = await startCounting([service, ...helpers], idle);
  // Quick pages may have gone further before the shares were known.
  const last = Math.min(endedBefore + urls, all);
  await until('the crawls that are measured', () => ended() >= last);
  const figure = await figureOf(() => ended() - endedBefore);
  await until('the last crawl', () => ended() >= all);
  await until('a process without work', async () => (await activeCrawlers(service)) === 0);
  return figure;
}

/**
 * Commands per second of a process that has nothing to do, for at least the given number of
 * seconds.
 */
export async function commandsWhenIdle(
  service: CountedProcess,
  seconds: number,
): Promise<CommandFigure> {
  await nextUpkeep(service);
  const figureOf = await startCounting([service]);
  for (let n = 0; n < seconds / UPKEEP_SECONDS; n++) await nextUpkeep(service);
  return figureOf((passed) => passed);
}

/** Commands from a push to an idle crawler until the process has let go of the crawler. */
export interface SingleUrlFigure extends CommandFigure {
  /** Those of each URL, without the looks for tasks. Some contain an upkeep, the least contains none. */
  readonly each: readonly number[];
}

/** Commands that one URL pushed to an idle crawler costs, until the process has let go of the crawler. */
export async function commandsOfOneUrl(
  { service, site, idle }: CommandBench,
  urls: number,
): Promise<SingleUrlFigure> {
  const first = site.hits();
  const names = Array.from({ length: urls }, (_, n) => `single-${first + n}`);
  for (const name of names) await post(service, '', { name });
  await until('a process without work', async () => (await activeCrawlers(service)) === 0);
  await nextUpkeep(service);
  const each: number[] = [];
  const figureOf = await startCounting([service], idle);
  for (const name of names) {
    const before = await service.commands();
    await pushAll(service, name, [`${site.url}/page/${name}`]);
    await until(`the crawl of ${name}`, () => site.hits(`/page/${name}`) === 1);
    await until('its release', async () => (await activeCrawlers(service)) === 0);
    const sent = commandsBetween(before, await service.commands());
    each.push(totalOf(sent) - looksIn(sent));
  }
  await nextUpkeep(service);
  return { ...(await figureOf(() => urls)), each };
}

/** Commands per second of a process that holds `crawlers` with free slots and nothing to claim. */
export async function commandsOfLeased(
  { service, site }: CommandBench,
  crawlers: number,
  seconds: number,
): Promise<CommandFigure> {
  const names = Array.from({ length: crawlers }, (_, n) => `leased-${n}`);
  let next = 0;
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (let name = names[next++]; name !== undefined; name = names[next++]) {
        await post(service, '', { name, concurrency: 2 });
        await pushAll(service, name, [`${site.url}/hang?${name}`]);
      }
    }),
  );
  await until('a crawl of each', () => site.concurrent === crawlers);
  // What the pushes and the first claims have caused passes in a moment.
  await wait(2_000);
  const figure = await commandsWhenIdle(service, seconds);
  for (const name of names) await post(service, `/${name}/delete`, {});
  await until('the end of their crawls', () => site.concurrent === 0);
  return figure;
}
