import { setTimeout as wait } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { StoredResultSchema } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { waitForResults } from '../../../src/client/wait-for-results.ts';

test('a rid that the source has again after its result was removed is not waited for', async () => {
  const stored = new Set(Array.from({ length: 1_200 }, (_, index) => `rid-${index}`));
  const rids = [...stored, 'rid-0'];
  const taken: string[] = [];
  const options = { remove: true, patienceMs: 500 };
  for await (const { rid } of waitForResults(serviceOf(stored), rids, options)) taken.push(rid);
  expect(taken).toEqual(rids.slice(0, -1));
});

test('the time that the caller takes is not in the patience', async () => {
  const stored = new Set(['first']);
  let looks = 0;
  const service = serviceOf(stored, () => {
    looks += 1;
    if (looks === 3) stored.add('second');
  });
  const taken: string[] = [];
  const results = waitForResults(service, ['first', 'second'], { patienceMs: 2_000 });
  for await (const { rid } of results) {
    taken.push(rid);
    if (rid === 'first') await wait(2_100);
  }
  expect(taken).toEqual(['first', 'second']);
});

/** A service that has stored the results of these `rid`s. */
function serviceOf(
  stored: Set<string>,
  onLook: () => void = () => undefined,
): Parameters<typeof waitForResults>[0] {
  return {
    storage: {
      bulkGetResults: async ({ rids = [] }) => {
        onLook();
        const there = rids.filter((rid) => stored.has(rid));
        const results = there.map((rid) => create(StoredResultSchema, { rid }));
        return { results, deferredRids: [] } as never;
      },
      bulkDeleteResults: async ({ rids = [] }) => {
        for (const rid of rids) stored.delete(rid);
        return {} as never;
      },
    },
    activity: { findRid: async () => ({}) as never },
  };
}
