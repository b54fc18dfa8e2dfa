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

/** A service that has stored the results of these `rid`s. */
function serviceOf(stored: Set<string>): Parameters<typeof waitForResults>[0] {
  return {
    storage: {
      bulkGetResults: async ({ rids = [] }) =>
        ({
          results: rids
            .filter((rid) => stored.has(rid))
            .map((rid) => create(StoredResultSchema, { rid })),
          deferredRids: [],
        }) as never,
      bulkDeleteResults: async ({ rids = [] }) => {
        for (const rid of rids) stored.delete(rid);
        return {} as never;
      },
    },
    activity: { findRid: async () => ({}) as never },
  };
}
