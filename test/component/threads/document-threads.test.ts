import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createDocumentThreads } from '../../../src/threads/document-threads.ts';
import { silentLogger } from '../../support/loggers.ts';

test('a page whose thread ends while it starts has failed', async () => {
  const documents = createDocumentThreads({ threads: 1, timeoutMs: 5_000, logger: silentLogger });
  const page = {
    url: 'https://example.com/',
    contentType: 'text/html',
    isText: true,
    body: Buffer.from('<p>a</p>'),
  };
  const { signal } = new AbortController();
  const claimant = { accountId: 'a', crawlerId: 'c' };
  const request = { parameters: { format: 'md' } } as const;
  const reading = documents.read(page, request, claimant, signal);
  // The thread has been started, and loads its program.
  await setImmediate();
  await documents.close();
  expect(await reading).toEqual({ failed: 'the service is closing' });
});
