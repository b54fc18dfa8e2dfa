import type { QueuedHost, QueuedHosts } from '../host-store.ts';
import type { QueuePart, QueuePosition } from './in-thread.ts';

/** Reads a queue part by part. Returns the hosts with the most jobs, and how many have any. */
export async function longestHosts(
  read: (after: QueuePosition) => Promise<QueuePart>,
  limit: number,
): Promise<QueuedHosts> {
  let longest: QueuedHost[] = [];
  let total = 0;
  let current: QueuedHost | undefined;

  function end(): void {
    if (current === undefined) return;
    total += 1;
    longest.push(current);
    if (longest.length >= 2 * limit) longest = first(longest, limit);
  }

  let after: QueuePosition | undefined = { host: '' };
  while (after !== undefined) {
    const part = await read(after);
    for (const found of part.hosts) {
      if (current?.host === found.host) current = sum(current, found);
      else {
        end();
        current = found;
      }
    }
    after = part.next;
  }
  end();
  return { hosts: first(longest, limit), total };
}

function sum(one: QueuedHost, other: QueuedHost): QueuedHost {
  const nextDueAt = one.nextDueAt < other.nextDueAt ? one.nextDueAt : other.nextDueAt;
  return { host: one.host, queued: one.queued + other.queued, nextDueAt };
}

function first(hosts: readonly QueuedHost[], limit: number): QueuedHost[] {
  const byLength = (a: QueuedHost, b: QueuedHost): number =>
    b.queued - a.queued || (a.host < b.host ? -1 : 1);
  return hosts.toSorted(byLength).slice(0, limit);
}
