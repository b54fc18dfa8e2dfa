import type { QueueStore } from '../store.ts';
import type { Collections } from './collections.ts';
import { createFinish, createWriteWork } from './finish.ts';
import { createHostMarks } from './host-marks.ts';
import type { Lanes } from './lanes.ts';
import { createLeases } from './leases.ts';
import { createPush } from './push.ts';
import { createQueueReads } from './queue-reads.ts';
import { deleteJobs, purge } from './queue-removals.ts';
import { createTurn } from './turn.ts';

/** The queue: pushes, leases, claims and the ends of jobs. */
export function createQueue(collections: Collections, lanes: Lanes): QueueStore {
  const marks = createHostMarks();
  const writeWork = createWriteWork(collections, lanes);
  const push = createPush(collections, lanes);
  return {
    push(request, limits, now) {
      marks.add(
        request.crawlerId,
        request.jobs.map(({ host }) => host),
      );
      return push(request, limits, now);
    },
    ...createLeases(collections, lanes),
    turn: createTurn(collections, lanes, marks, writeWork),
    finish: createFinish(collections, lanes, writeWork),
    ...createQueueReads(collections),
    deleteJob: async (crawlerId, rid, now) =>
      (await deleteJobs(collections, lanes, { crawlerId, rids: [rid], now })).length > 0,
    deleteJobs: (crawlerId, rids, now) => deleteJobs(collections, lanes, { crawlerId, rids, now }),
    purge: (crawlerId, now) => purge(collections, lanes, crawlerId, now),
  };
}
