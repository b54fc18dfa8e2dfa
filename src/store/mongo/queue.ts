import type { QueueStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { createFinish, createWriteWork } from './finish.ts';
import { createKnownJobs } from './job-facts.ts';
import type { Lanes } from './lanes.ts';
import { createLeases } from './leases.ts';
import { createPush } from './push.ts';
import { createQueueReads } from './queue-reads.ts';
import { deleteJobs, purge } from './queue-removals.ts';
import { createTurn } from './turn.ts';

/** The queue: pushes, leases, claims and the ends of jobs. */
export function createQueue(collections: Collections, lanes: Lanes): QueueStore {
  const known = createKnownJobs(collections);
  const writeWork = createWriteWork(collections, lanes, known);
  return {
    push: createPush(collections, lanes),
    ...createLeases(collections, lanes),
    turn: createTurn(collections, lanes, known, writeWork),
    finish: createFinish(collections, lanes, writeWork),
    ...createQueueReads(collections),
    deleteJob: async (crawlerId, rid, now) =>
      (await deleteJobs(collections, lanes, { crawlerId, rids: [rid], now })).length > 0,
    deleteJobs: (crawlerId, rids, now) => deleteJobs(collections, lanes, { crawlerId, rids, now }),
    purge: (crawlerId, now) => purge(collections, lanes, crawlerId, now),
  };
}
