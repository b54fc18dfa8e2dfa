import { systemClock } from '../../src/domain/clock.ts';
import type { CrawlRequest } from '../../src/domain/job.ts';
import type { CrawlParameters } from '../../src/domain/parameters.ts';
import type { CrawlTask, Page } from '../../src/engine/engine.ts';
import { createHttpEngine, type HttpEngineDeps } from '../../src/engine/http/http-engine.ts';
import { createHttpClient } from '../../src/net/create-http-client.ts';
import type { LookupAnswer } from '../../src/net/lookup.ts';
import { parseNetworkAllow } from '../../src/net/network-allow.ts';

/** An HTTP engine for tests, over a real client. */
export interface TestEngine extends AsyncDisposable {
  /** Crawls a URL; `more` changes the request and the task. */
  crawl(
    url: string,
    parameters?: CrawlParameters,
    more?: Partial<CrawlRequest> & Partial<Omit<CrawlTask, 'request'>> & { signal?: AbortSignal },
  ): Promise<Page>;
  /** Errors the engine logged. */
  readonly errors: readonly object[];
}

/** Starts one that may reach `allow`, with limits of 2 s and 1 MiB. Names under `.test` lead to 127.0.0.1. */
export function startHttpEngine(
  options: { readonly allow: string; readonly torProxy?: string } & Partial<
    Omit<HttpEngineDeps, 'client'>
  >,
): TestEngine {
  const errors: object[] = [];
  const ignore = (): void => undefined;
  const lookup = async (): Promise<LookupAnswer[]> => [{ address: '127.0.0.1', family: 4 }];
  const client = createHttpClient({
    allow: parseNetworkAllow(options.allow),
    torProxy: options.torProxy,
    lookup,
  });
  const engine = createHttpEngine({
    clock: systemClock,
    limits: { timeoutMs: 2_000, maxBodyBytes: 1024 * 1024 },
    logger: { debug: ignore, info: ignore, warn: ignore, error: (fields) => errors.push(fields) },
    ...options,
    client,
  });
  return {
    errors,
    crawl(url, parameters = {}, more = {}) {
      const { method = 'GET', body, contentType, signal, ...task } = more;
      return engine.crawl(
        {
          request: { url, method, body, contentType, parameters },
          tokenType: 'normal',
          accountId: 'account',
          crawlerId: 'crawler',
          politeness: undefined,
          ...task,
        },
        signal ?? new AbortController().signal,
      );
    },
    [Symbol.asyncDispose]: async () => {
      await engine.close();
      await client.close();
    },
  };
}

/** The body of a page as text. */
export function textOf(page: Page): string {
  return Buffer.from(page.body).toString('utf8');
}
