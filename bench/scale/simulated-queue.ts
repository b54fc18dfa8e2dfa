import type { DueJob } from '../../src/domain/job.ts';
import type { QueueLook, TurnReceipt } from '../../src/store/store.ts';

type Found = Pick<TurnReceipt, 'jobs' | 'hasMore' | 'nextDueAt' | 'lastHost' | 'seesAllHosts'>;

/** A queue of which only the number of URLs of each host is kept, in the order of the hosts' names. */
export interface SimulatedQueue {
  /** URLs that have not been crawled. */
  readonly left: number;
  /** Hosts that looks have gone to. */
  readonly steps: number;
  look(wanted: QueueLook): Found;
  /** A job was read ahead, or is not any more. */
  hold(host: number, by: 1 | -1): void;
  /** A URL was crawled. */
  done(host: number): void;
}

/** Most hosts that one look steps to, as in `store/sqlite/look.ts`. */
const MAX_STEPS = 10_000;
const DUE = new Date(0);

/** The host of a number, so that names and numbers have the same order. */
export function hostName(host: number): string {
  return `h${String(host).padStart(8, '0')}.example`;
}

/** The number of a host. */
export function hostNumber(name: string): number {
  return Number(name.slice(1, 9));
}

/** Makes a queue with the given number of URLs of each host. */
export function createSimulatedQueue(counts: Int32Array): SimulatedQueue {
  const waiting = counts.slice();
  const held = new Int32Array(counts.length);
  /** The next host that may have URLs, as a tree that is shortened when it is walked. */
  const next = new Int32Array(counts.length + 1).map((_, host) => host);
  let left = counts.reduce((sum, count) => sum + count, 0);
  let rids = 0;
  let steps = 0;

  function nextHost(from: number): number {
    let host = from;
    while (next[host] !== host) {
      next[host] = next[next[host] ?? 0] ?? 0;
      host = next[host] ?? 0;
    }
    return host;
  }

  function take(jobs: DueJob[], host: number, most: number): boolean {
    const free = (waiting[host] ?? 0) - (held[host] ?? 0);
    for (let n = 0; n < Math.min(free, most); n += 1) jobs.push(jobOf(host, (rids += 1)));
    return free > most;
  }

  function byAge(limit: number): Found {
    const jobs: DueJob[] = [];
    let host = nextHost(0);
    while (host < counts.length && jobs.length < limit) {
      take(jobs, host, limit - jobs.length);
      host = nextHost(host + 1);
    }
    return { jobs, hasMore: jobs.length >= limit, nextDueAt: undefined };
  }

  function byHosts({
    limit,
    hosts,
  }: QueueLook & { hosts: NonNullable<QueueLook['hosts']> }): Found {
    const jobs: DueJob[] = [];
    const full = hosts.full.map(hostNumber);
    const leftOut = new Set([...hosts.closed.map(hostNumber), ...full]);
    const more: number[] = [];
    const after = hosts.after === '' ? -1 : hostNumber(hosts.after);
    let host = after;
    let isSecondRound = after === -1;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const found = nextHost(host + 1);
      steps += 1;
      if (found >= counts.length || (isSecondRound && after !== -1 && found > after)) {
        if (!isSecondRound) {
          isSecondRound = true;
          host = -1;
          continue;
        }
        const most = Math.min(limit, jobs.length + hosts.rest);
        let hasMore = false;
        for (const each of [...more, ...full]) {
          hasMore = take(jobs, each, Math.max(0, most - jobs.length));
          if (hasMore) break;
        }
        return { jobs, hasMore, nextDueAt: undefined, seesAllHosts: true };
      }
      host = found;
      if (leftOut.has(host)) continue;
      if (take(jobs, host, Math.min(hosts.perHost, limit - jobs.length))) more.push(host);
      if (jobs.length >= limit) break;
    }
    return { jobs, hasMore: true, nextDueAt: undefined, lastHost: hostName(host) };
  }

  return {
    get left() {
      return left;
    },
    get steps() {
      return steps;
    },
    look: (wanted) =>
      wanted.hosts === undefined
        ? byAge(wanted.limit)
        : byHosts({ ...wanted, hosts: wanted.hosts }),
    hold(host, by) {
      held[host] = (held[host] ?? 0) + by;
    },
    done(host) {
      left -= 1;
      waiting[host] = (waiting[host] ?? 0) - 1;
      if (waiting[host] === 0) next[host] = host + 1;
    },
  };
}

function jobOf(host: number, number: number): DueJob {
  return {
    rid: String(number),
    crawlerId: 'simulated',
    accountId: 'simulated',
    url: `http://${hostName(host)}/`,
    host: hostName(host),
    method: 'GET',
    body: undefined,
    contentType: undefined,
    parameters: {},
    callbackHeaders: [],
    priority: 5,
    queueDeadline: undefined,
    createdAt: DUE,
    state: 'waiting',
    retry: 0,
    attempt: 0,
    crashes: 0,
    firstTriedAt: undefined,
    dueAt: DUE,
  };
}
