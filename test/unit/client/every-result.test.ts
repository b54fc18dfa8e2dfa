import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { StreamResultsResponseSchema } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { everyResult } from '../../../src/client/every-result.ts';

type Storage = Parameters<typeof everyResult>[0];

test('a stream that sends nothing for long is opened again where it was', async () => {
  const opened: string[] = [];
  async function* streamResults(
    { resumeToken = '' }: { resumeToken?: string },
    { signal }: { signal?: AbortSignal } = {},
  ) {
    opened.push(resumeToken);
    const place = String(opened.length);
    yield create(StreamResultsResponseSchema, { result: { rid: place }, resumeToken: place });
    await new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
  }
  const storage = { streamResults, acknowledgeResults: async () => ({}) } as unknown as Storage;
  const rids: string[] = [];
  for await (const { rid } of everyResult(storage, { follow: true }, 50)) {
    rids.push(rid);
    if (rids.length === 3) break;
  }
  expect(rids).toEqual(['1', '2', '3']);
  expect(opened).toEqual(['', '1', '2']);
});
