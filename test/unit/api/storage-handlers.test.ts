import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { storageHandlers } from '../../../src/api/storage-handlers.ts';
import { silentLogger } from '../../support/loggers.ts';

const RID = '0123456789abcdef01234567';
const { bulkGetResults } = StorageService.method;

test('held results are shown again when the call fails, although its error is received', async () => {
  const done: string[] = [];
  const owner = { account: { accountId: 'a' } };
  const handlers = storageHandlers({
    authenticator: {} as never,
    tokenWatch: {} as never,
    storage: {
      select: async () => ({ rids: [RID], bytes: 1, deferred: [] }),
      release: async () => void done.push('released'),
      remove: async () => void done.push('removed'),
      getMany: async () => [],
    } as never,
    markdownPages: {} as never,
    resultStreams: {} as never,
    quotas: { takeRequest: () => undefined },
    slots: {} as never,
    logger: silentLogger,
  });
  const handler = handlers.find(({ desc }) => desc === bulkGetResults);
  if (handler?.kind !== 'unary') throw new Error('there is no such method');
  const call = {
    caller: { token: 't', owner },
    room: { giveBack: () => undefined, take: () => Promise.reject(new Error('no room')) },
    received: Promise.resolve(true),
  };
  const request = create(bulkGetResults.input, { token: 't', rids: [RID], autoDelete: true });
  await expect(handler.handle(request, call as never)).rejects.toThrow('no room');
  await new Promise(setImmediate);
  expect(done).toEqual(['released']);
});
