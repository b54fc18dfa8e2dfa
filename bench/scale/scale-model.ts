import { readFileSync } from 'node:fs';
import { SLOTS_PER_PROCESS } from '../../src/dispatcher/run-share.ts';
import { MAX_PROCESSES } from '../../src/dispatcher/share-plan.ts';

/** What differs between a page that is stored and one that is delivered. */
interface ByDelivery {
  readonly storage: number;
  readonly webhook: number;
}

/** What a design costs; `costs.json` has the figures. */
export interface DesignCosts {
  readonly title: string;
  /** One round of a run: writes what has ended, claims. */
  readonly turn: {
    /** A turn takes in what ends within this time; 0 starts one whenever something has ended. */
    readonly leastIntervalMs: number;
    readonly roundTrips: ByDelivery;
    readonly majorityWaits: ByDelivery;
    readonly commands: ByDelivery;
    /** Commands among them that name no shard key, and go to every shard. */
    readonly broadcasts: ByDelivery;
    readonly crawlerUpdates: ByDelivery;
    readonly accountUpdates: number;
  };
  /** Turns for which a slot is idle after each page. */
  readonly slotWaitsTurns: number;
  /** One group of pushes. */
  readonly push: {
    readonly commands: number;
    readonly crawlerUpdates: number;
    readonly accountUpdates: number;
    readonly rateUpdates: number;
  };
  /** Writes of documents, and processor time of the service, for each URL. */
  readonly url: { readonly writes: ByDelivery; readonly cpuMs: ByDelivery };
  /** What holding a crawler costs, whether it has work or not. */
  readonly leased: {
    readonly commandsPerSecond: ByDelivery;
    readonly crawlerUpdatesPerSecond: number;
  };
  /** What a process costs that has no work. */
  readonly process: {
    readonly commandsPerSecond: number;
    readonly schedulerLooksPerSecond: number;
    readonly accountUpdatesPerSecond: number;
    readonly rateUpdatesPerSecond: number;
  };
  /** Whether several processes work on one crawler. */
  readonly spreads: boolean;
}

/** What MongoDB and machines are taken to do; not measured here. */
export interface Assumed {
  readonly roundTripMs: number;
  readonly majorityMs: number;
  readonly updatesOfOneDocument: number;
  readonly writesOfOneShard: number;
  readonly commandsOfOneShard: number;
  /** Conditional updates that all try the first entry of one index. */
  readonly looksAtOneIndex: number;
  readonly connectionsOfOneServer: number;
  readonly coresOfOneProcess: number;
}

/** What is deployed, and how it is used. */
export interface Deployment {
  readonly processes: number;
  readonly shards: number;
  readonly accounts: number;
  readonly crawlers: number;
  readonly concurrency: number;
  readonly pageMs: number;
  readonly delivery: keyof ByDelivery;
  /** URLs of one call of a push. */
  readonly pushedAtOnce: number;
}

/** Something that can be used up. */
export interface Resource {
  readonly name: string;
  /** What it has to do, and what it can do; in a second, but for connections. */
  readonly demand: number;
  readonly capacity: number;
}

/** Connections of each process, `CONNECTIONS` of `store/mongo/client-options.ts`. */
const POOL = 50;

/** Reads the costs of both designs. */
export function readCosts() {
  return JSON.parse(readFileSync(new URL('costs.json', import.meta.url), 'utf8')) as {
    readonly assumed: Assumed;
    readonly designs: Readonly<Record<'lease' | 'shares', DesignCosts>>;
  };
}

/** What everything has to do when `rate` URLs a second are pushed and crawled, evenly by all crawlers. */
export function resourcesAt(
  rate: number,
  costs: DesignCosts,
  assumed: Assumed,
  use: Deployment,
): readonly Resource[] {
  const { delivery, crawlers, processes, shards, accounts } = use;
  const { turn, push, leased, process: idle } = costs;
  const { roundTripMs, majorityMs } = assumed;
  const turnMs =
    turn.roundTrips[delivery] * roundTripMs + turn.majorityWaits[delivery] * majorityMs;
  // A crawler spreads when there are more processes than crawlers; small ones stay on one.
  const mostRuns = Math.min(MAX_PROCESSES, use.concurrency / SLOTS_PER_PROCESS.normal);
  const runsOfOne = costs.spreads
    ? Math.max(1, Math.floor(Math.min(processes / crawlers, mostRuns)))
    : 1;
  const runs = crawlers * runsOfOne;
  const endsOfRun = rate / runs;
  const turnsOfRun = Math.min(endsOfRun, 1_000 / Math.max(turnMs, turn.leastIntervalMs));
  const turns = turnsOfRun * runs;
  const groups = rate / use.pushedAtOnce;
  const busyProcesses = Math.min(runs, processes);

  const crawlerUpdates =
    turnsOfRun * runsOfOne * turn.crawlerUpdates[delivery] +
    (groups / crawlers) * push.crawlerUpdates +
    leased.crawlerUpdatesPerSecond;
  // What a process gathers for an account it writes only when there is something.
  const gathered = (events: number, perProcess: number): number =>
    Math.min(events / accounts, processes * perProcess);
  const accountUpdates =
    (turns * turn.accountUpdates + groups * push.accountUpdates) / accounts +
    gathered(turns + groups, idle.accountUpdatesPerSecond);
  const rateUpdates =
    (groups * push.rateUpdates) / accounts + gathered(groups, idle.rateUpdatesPerSecond);
  const turnCommands = turns * turn.commands[delivery];
  const broadcasts = turns * turn.broadcasts[delivery];
  // Jobs and records are on all shards; crawlers, accounts and tasks are on the first. A turn has one
  // command for the account, as many as it updates the crawler, and the others for jobs and records.
  const unshardedOfTurn = turns * (turn.crawlerUpdates[delivery] + turn.accountUpdates);
  const unsharded =
    unshardedOfTurn +
    groups * (push.commands - 1) +
    crawlers * leased.commandsPerSecond[delivery] +
    processes * idle.commandsPerSecond;
  const sharded = turnCommands - unshardedOfTurn + groups;
  const firstShard = unsharded + (sharded - broadcasts) / shards + broadcasts;
  const slotMs = use.pageMs + costs.slotWaitsTurns * turnMs;

  return [
    { name: 'slots', demand: rate, capacity: (crawlers * use.concurrency * 1_000) / slotMs },
    {
      name: 'processors of the service',
      demand: (rate * costs.url.cpuMs[delivery]) / 1_000,
      capacity: busyProcesses * assumed.coresOfOneProcess,
    },
    {
      name: 'document of the busiest crawler',
      demand: crawlerUpdates,
      capacity: assumed.updatesOfOneDocument,
    },
    {
      name: 'document of the account',
      demand: accountUpdates,
      capacity: assumed.updatesOfOneDocument,
    },
    {
      name: 'document of the rate',
      demand: rateUpdates,
      capacity: assumed.updatesOfOneDocument,
    },
    {
      name: 'index `due` of the tasks',
      demand: processes * idle.schedulerLooksPerSecond,
      capacity: assumed.looksAtOneIndex,
    },
    {
      name: 'commands at the first shard',
      demand: firstShard,
      capacity: assumed.commandsOfOneShard,
    },
    {
      name: 'writes of each shard',
      demand: (rate * costs.url.writes[delivery]) / shards + crawlerUpdates * (crawlers / shards),
      capacity: assumed.writesOfOneShard,
    },
    {
      name: 'connections of a server, when all pools are full',
      demand: processes * POOL,
      capacity: assumed.connectionsOfOneServer,
    },
  ];
}

/** A resource, and the rate at which it is used up; Infinity when the rate does not matter. */
export interface Limit {
  readonly name: string;
  readonly rate: number;
}

const MOST_RATE = 10_000_000;

/** At which rate each resource is used up, the first one first; 0 for one that is used up without any URL. */
export function limitsOf(costs: DesignCosts, assumed: Assumed, use: Deployment): readonly Limit[] {
  const loadAt = (rate: number): readonly number[] =>
    resourcesAt(rate, costs, assumed, use).map(({ demand, capacity }) => demand / capacity);
  return resourcesAt(0, costs, assumed, use)
    .map(({ name }, at): Limit => {
      const load = (rate: number): number => loadAt(rate)[at] ?? 0;
      if (load(0) >= 1) return { name, rate: 0 };
      if (load(MOST_RATE) < 1) return { name, rate: Number.POSITIVE_INFINITY };
      let [from, to] = [0, MOST_RATE];
      while (to - from > 0.5) {
        const middle = (from + to) / 2;
        if (load(middle) < 1) from = middle;
        else to = middle;
      }
      return { name, rate: Math.round(from) };
    })
    .toSorted((left, right) => left.rate - right.rate);
}
