import type { QueueStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { createFinish } from './finish.ts';
import { createKnownJobs } from './job-facts.ts';
import { createKnownStates } from './known-states.ts';
import { createLeases } from './leases.ts';
import type { Ledger } from './ledger.ts';
import { createPush } from './push.ts';
import { crawlersWithWorkDue, findJob, listQueued, overdue } from './queue-reads.ts';
import { deleteJob, purge } from './queue-removals.ts';
import { createTurn } from './turn.ts';

/** The queue: pushes, leases, claims and the ends of jobs. */
export function createQueue(collections: Collections, ledger: Ledger): QueueStore {
  const known = createKnownJobs(collections);
  const states = createKnownStates();
  return {
    push: createPush(collections, ledger),
    ...createLeases(collections, ledger, states),
    turn: createTurn(collections, ledger, known, states),
    finish: createFinish(collections, ledger, known),
    overdue: (now, limit) => overdue(collections, now, limit),
    crawlersWithWorkDue: (now, limit) => crawlersWithWorkDue(collections, now, limit),
    find: (crawlerId, rid) => findJob(collections, crawlerId, rid),
    listQueued: (crawlerId, limit, after) => listQueued(collections, crawlerId, limit, after),
    deleteJob: (crawlerId, rid, now) => deleteJob(collections, ledger, { crawlerId, rid, now }),
    purge: (crawlerId, now) => purge(collections, ledger, crawlerId, now),
  };
}
