import type { Transport } from '@connectrpc/connect';
import type { CrawlerClient } from './client.ts';
import { createServiceClients } from './create-service-clients.ts';
import { everyResult } from './every-result.ts';
import { pushUrls } from './push-urls.ts';
import { stopAt } from './stop-at.ts';
import { waitForResults } from './wait-for-results.ts';

/** Makes a client over a transport that knows the token; closing it calls `close`. */
export function createClientOver(transport: Transport, close: () => void): CrawlerClient {
  const services = createServiceClients(transport);
  const { pushes, storage } = services;
  return {
    ...services,
    push: (crawler, urls, pushOptions) =>
      stopAt(pushOptions?.signal, pushUrls(pushes, crawler, urls, pushOptions)),
    results: (rids, resultOptions) =>
      stopAt(resultOptions?.signal, waitForResults(services, rids, resultOptions)),
    everyResult: (resultOptions) =>
      stopAt(resultOptions?.signal, everyResult(storage, resultOptions)),
    close,
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}
