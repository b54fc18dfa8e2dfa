import { createClientOver } from './client-over.ts';
import { openConnection } from './connection.ts';
import type { CrawledPage } from './crawled-page.ts';
import type { EveryResultOptions, StreamedPage } from './every-result.ts';
import type { Pushed, PushOptions, UrlToPush } from './push-urls.ts';
import type { RetryOptions } from './retry-options.ts';
import type { ServiceClients } from './service-clients.ts';
import type { ResultOptions } from './wait-for-results.ts';

export { type CallFailure, describeFailure } from './call-failure.ts';
export { type CrawledPage, unpackResult } from './crawled-page.ts';
export type { EveryResultOptions, StreamedPage } from './every-result.ts';
export type { Pushed, PushOptions, UrlToPush } from './push-urls.ts';
export type { RetryOptions } from './retry-options.ts';
export type { CallOptions, ServiceClient, ServiceClients } from './service-clients.ts';
export type { ResultOptions } from './wait-for-results.ts';

/** Where the service is, and on whose behalf it is called. */
export interface CrawlerClientOptions {
  /** For example `http://127.0.0.1:8080`. */
  readonly baseUrl: string;
  /** An account's Normal or JavaScript token; for `accounts` and `operator`, the admin token. */
  readonly token: string;
  /**
   * Default `2`. Proxies that pass on HTTP/1.1 alone need `1.1`, with which streams that go both
   * ways, such as PushStream, do not work; everything else does.
   */
  readonly httpVersion?: '1.1' | '2';
  /** PEM text of the certificate authority, where it is not one that Node knows. */
  readonly ca?: string | Buffer;
  /** How calls are repeated that the service could not answer at the moment. */
  readonly retries?: RetryOptions;
}

/**
 * The service as a TypeScript program calls it: every method of every service, and loops over
 * many URLs and results. Calls throw ConnectError; `describeFailure` reads one.
 */
export interface CrawlerClient extends ServiceClients, AsyncDisposable {
  /**
   * Pushes URLs into a crawler's queue and yields what became of each, in the order of the source.
   * The source is read only as fast as the service accepts and the caller takes; refusals for rate
   * or room are waited for.
   */
  push(
    crawler: string,
    urls: Iterable<UrlToPush> | AsyncIterable<UrlToPush>,
    options?: PushOptions,
  ): AsyncGenerator<Pushed, void, undefined>;
  /**
   * Waits for the results of a storage crawler's `rid`s and yields each when it is there, in the
   * order of their coming.
   */
  results(
    rids: Iterable<string> | AsyncIterable<string>,
    options?: ResultOptions,
  ): AsyncGenerator<CrawledPage, void, undefined>;
  /**
   * Yields stored results in the order in which they were stored, at least once each, and continues by
   * itself after a lost connection. With `follow`, new ones as they come.
   */
  everyResult(options?: EveryResultOptions): AsyncGenerator<StreamedPage, void, undefined>;
  /** Closes the connections; calls in progress fail. */
  close(): void;
}

/** Makes a client. It connects with its first call, and has to be closed. */
export function createCrawlerClient(options: CrawlerClientOptions): CrawlerClient {
  const connection = openConnection(options);
  return createClientOver(connection.transport, () => connection.close());
}
