import type { DueJob } from '../../domain/job.ts';
import { DEFAULT_PRIORITY, MAX_PRIORITY, orderMs } from '../../domain/priority.ts';
import { hostsOf } from '../rules.ts';
import type { HostsLook, LookReceipt, QueueLook } from '../store.ts';
import { toJob } from './job-row.ts';
import { type Sql, type SqlRow, toDate } from './sql.ts';

/** Whose jobs are looked for. */
interface Queue {
  readonly crawlerId: string;
  readonly purges: number;
  /** Whether jobs may have another priority than the default. */
  readonly hasPriorities: boolean;
}

/** Most hosts that one look steps to. A step takes about three microseconds. */
const MAX_STEPS = 10_000;
const WAITS = "crawler_id = ? AND gen = ? AND state <> 'running'";
const MAY_START = '(queue_deadline IS NULL OR queue_deadline > ? OR first_tried_at IS NOT NULL)';

/** Finds due jobs; see `QueueLook`. */
export function look(sql: Sql, queue: Queue, wanted: QueueLook, now: Date): LookReceipt {
  const hosts = hostsOf(wanted, queue.hasPriorities);
  return hosts === undefined
    ? lookByAge(sql, queue, wanted, now)
    : lookByHosts(sql, queue, { ...wanted, hosts }, now);
}

function lookByAge(
  sql: Sql,
  { crawlerId, purges }: Queue,
  { limit, maxBytes = Number.POSITIVE_INFINITY, except = [] }: QueueLook,
  now: Date,
): LookReceipt {
  const rows = sql.each(
    `SELECT * FROM jobs INDEXED BY jobs_next WHERE ${WAITS}
      AND rid NOT IN (SELECT value FROM json_each(?)) AND ${MAY_START}
      ORDER BY due_at, rid LIMIT ?`,
    crawlerId,
    purges,
    JSON.stringify(except),
    now.getTime(),
    limit,
  );
  const jobs: DueJob[] = [];
  let bytes = 0;
  for (const row of rows) {
    const dueAt = toDate(row.due_at);
    if (dueAt > now) return { jobs, hasMore: false, nextDueAt: dueAt };
    bytes += Number(row.size);
    if (jobs.length > 0 && bytes > maxBytes) return { jobs, hasMore: true, nextDueAt: undefined };
    jobs.push({ ...toJob(row), dueAt });
  }
  return { jobs, hasMore: jobs.length >= limit, nextDueAt: undefined };
}

/** Due jobs of each priority above the default one, with their place in the order of all. */
const URGENT = Array.from({ length: MAX_PRIORITY - DEFAULT_PRIORITY }, (_, n) => {
  const priority = DEFAULT_PRIORITY + 1 + n;
  const aheadMs = -orderMs({ dueAt: new Date(0), priority });
  return `SELECT * FROM (SELECT rid, host, due_at - ${aheadMs} AS position FROM jobs
    INDEXED BY jobs_urgent WHERE crawler_id = ?1 AND gen = ?2 AND state <> 'running'
    AND priority > 5 AND priority = ${priority} AND due_at <= ?3 ORDER BY due_at, rid LIMIT ?4)`;
});

/** The next job of one priority, where jobs of several are merged. */
interface Head {
  readonly row: SqlRow;
  readonly order: number;
  readonly rest: Iterator<SqlRow>;
}

/** Empty at the end. */
function headOf(rest: Iterator<SqlRow>): Head[] {
  const { value: row, done } = rest.next();
  if (done === true) return [];
  const order = orderMs({ dueAt: toDate(row.due_at), priority: Number(row.priority) });
  return [{ row, order, rest }];
}

const isBefore = (one: Head, other: Head): boolean =>
  one.order < other.order ||
  (one.order === other.order && String(one.row.rid) < String(other.row.rid));

/** Merges jobs that are ordered within each priority. Reads one more of each than are taken. */
function* inOrder(byPriority: readonly Iterable<SqlRow>[]): Iterable<SqlRow> {
  const [only, ...others] = byPriority;
  if (only !== undefined && others.length === 0) return yield* only;
  const sources = byPriority.map((rows) => rows[Symbol.iterator]());
  try {
    const heads = sources.flatMap(headOf);
    while (heads.length > 0) {
      const first = heads.reduce((least, head) => (isBefore(head, least) ? head : least));
      yield first.row;
      heads.splice(heads.indexOf(first), 1, ...headOf(first.rest));
    }
  } finally {
    for (const source of sources) source.return?.();
  }
}

function lookByHosts(
  sql: Sql,
  { crawlerId, purges, hasPriorities }: Queue,
  look: QueueLook & { readonly hosts: HostsLook },
  now: Date,
): LookReceipt {
  const { limit, maxBytes = Number.POSITIVE_INFINITY, except = [], hosts } = look;
  const nowMs = now.getTime();
  // The run has few jobs of most hosts: to pass over them here costs less than for each host a query
  // that knows them all.
  const has = new Set(except);
  const closed = new Set(hosts.closed);
  const leftOut = new Set([...hosts.closed, ...hosts.full]);
  const jobs: DueJob[] = [];
  let bytes = 0;
  let isFull = false;
  let lastTaken: string | undefined;

  const fits = (row: SqlRow): boolean =>
    jobs.length < limit && (jobs.length === 0 || bytes + Number(row.size) <= maxBytes);

  /** The priorities of the jobs of one host. */
  function prioritiesOf(host: string): number[] {
    if (!hasPriorities) return [DEFAULT_PRIORITY];
    const priorities: number[] = [];
    for (;;) {
      const row = sql.get(
        `SELECT priority FROM jobs INDEXED BY jobs_by_host WHERE ${WAITS} AND host = ? AND priority > ?
          ORDER BY priority LIMIT 1`,
        crawlerId,
        purges,
        host,
        priorities.at(-1) ?? -1,
      );
      if (row === undefined) return priorities;
      priorities.push(Number(row.priority));
    }
  }

  /** Due jobs of one host and priority. Statements that are read at once have texts of their own. */
  function dueOf(host: string, priority: number): Iterable<SqlRow> {
    return sql.each(
      `SELECT * FROM jobs INDEXED BY jobs_by_host WHERE ${WAITS} AND host = ?
        AND priority = ${priority} AND due_at <= ? AND ${MAY_START} ORDER BY due_at, rid`,
      crawlerId,
      purges,
      host,
      nowMs,
      nowMs,
    );
  }

  /** Takes due jobs of one host. Returns whether the host has more of them than `most`. */
  function take(host: string, most: number): boolean {
    const byPriority = prioritiesOf(host).map((priority) => dueOf(host, priority));
    let taken = 0;
    for (const row of inOrder(byPriority)) {
      const rid = String(row.rid);
      if (has.has(rid)) continue;
      if (taken === most) return true;
      if (!fits(row)) {
        isFull = true;
        return true;
      }
      bytes += Number(row.size);
      taken += 1;
      lastTaken = host;
      has.add(rid);
      jobs.push({ ...toJob(row), dueAt: toDate(row.due_at) });
    }
    return false;
  }

  function nextHost(after: string): string | undefined {
    const row = sql.get(
      `SELECT host FROM jobs INDEXED BY jobs_by_host WHERE ${WAITS} AND host > ?
        ORDER BY host LIMIT 1`,
      crawlerId,
      purges,
      after,
    );
    return row === undefined ? undefined : String(row.host);
  }

  /** How many jobs of a priority above the default each host has due that the run has not. */
  function urgentHosts(): Map<string, number> {
    const urgent = new Map<string, number>();
    if (!hasPriorities) return urgent;
    const most = limit + has.size;
    const rows = sql.all(
      `SELECT rid, host FROM (${URGENT.join(' UNION ALL ')}) ORDER BY position, rid LIMIT ?4`,
      crawlerId,
      purges,
      nowMs,
      most,
    );
    for (const row of rows) {
      const host = String(row.host);
      if (has.has(String(row.rid)) || closed.has(host)) continue;
      urgent.set(host, (urgent.get(host) ?? 0) + 1);
    }
    return urgent;
  }

  /** Takes jobs of the hosts that have such ones. The rest of the room is for all hosts in turn. */
  function takeUrgent(): void {
    const most = Math.ceil(limit / 2);
    for (const [host, count] of urgentHosts()) {
      if (jobs.length >= most || isFull) return;
      take(host, Math.min(count, most - jobs.length));
    }
  }

  /** Goes through the hosts. Returns those of which more may be read, or the host it stopped at. */
  function goRound(): { readonly more: string[] } | { readonly stoppedAt: string } {
    const more: string[] = [];
    let host = hosts.after;
    let isSecondRound = host === '';
    for (let steps = 0; steps < MAX_STEPS; steps += 1) {
      const next = nextHost(host);
      if (next === undefined || (isSecondRound && hosts.after !== '' && next > hosts.after)) {
        if (isSecondRound) return { more };
        isSecondRound = true;
        host = '';
        continue;
      }
      const hasMore = !leftOut.has(next) && take(next, hosts.perHost);
      // A host of which nothing fitted is the first of the next look.
      if (isFull) return { stoppedAt: lastTaken === next ? next : host };
      if (hasMore) more.push(next);
      host = next;
    }
    return { stoppedAt: host };
  }

  takeUrgent();
  const round = goRound();
  if ('stoppedAt' in round) {
    return { jobs, hasMore: true, nextDueAt: undefined, lastHost: round.stoppedAt };
  }
  const most = Math.min(limit, jobs.length + hosts.rest);
  const more = [...round.more, ...hosts.full];
  const hasMore = more.some((host) => isFull || take(host, Math.max(most - jobs.length, 0)));
  if (hasMore) return { jobs, hasMore, nextDueAt: undefined, seesAllHosts: true };
  const next = sql.get(
    `SELECT due_at FROM jobs INDEXED BY jobs_next WHERE ${WAITS} AND due_at > ?
      ORDER BY due_at LIMIT 1`,
    crawlerId,
    purges,
    nowMs,
  );
  const nextDueAt = next === undefined ? undefined : toDate(next.due_at);
  return { jobs, hasMore, nextDueAt, seesAllHosts: true };
}
