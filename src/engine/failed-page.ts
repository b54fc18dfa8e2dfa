import type { Logger } from '../domain/logger.ts';
import type { CrawlParameters } from '../domain/parameters.ts';
import { type FailureReason, type StatusVerdict, verdictOnFailure } from '../domain/status.ts';
import type { CrawlTask, Page } from './engine.ts';

/** What a crawl that brought nothing back is. */
export function failedPage(task: CrawlTask, reason: FailureReason, retryAfterMs?: number): Page {
  const verdict = verdictOnFailure(reason);
  return {
    cbStatus: verdict.cbStatus,
    originalStatus: 0,
    url: task.request.url,
    body: new Uint8Array(0),
    contentType: 'text/plain; charset=utf-8',
    isText: true,
    headers: [],
    ...failureOf(verdict, retryAfterMs),
  };
}

/** The same of a site that had answered, at least with a status. */
export function failedAnswer(
  task: CrawlTask,
  reason: FailureReason,
  answer: { readonly status: number; readonly headers: Page['headers']; readonly url: string },
): Page {
  const { status: originalStatus, headers, url } = answer;
  return { ...failedPage(task, reason), originalStatus, headers, url };
}

/** The failure of a verdict; nothing for a crawl that ended well. */
export function failureOf(verdict: StatusVerdict, retryAfterMs?: number): Pick<Page, 'failure'> {
  const { reason, transient } = verdict;
  if (reason === '') return {};
  return {
    failure: { reason, transient, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) },
  };
}

/** Where a crawl starts and through which proxy of the operator, or why it cannot start. */
export function resolveTarget(
  { url, parameters }: { readonly url: string; readonly parameters: CrawlParameters },
  proxies: Readonly<Record<string, string>>,
):
  | { readonly start: URL; readonly proxy: string | undefined }
  | { readonly refused: FailureReason } {
  const start = URL.parse(url);
  if (start === null || !/^https?:$/.test(start.protocol)) return { refused: 'invalid_url' };
  const exit = parameters.tor_network === true ? 'tor' : parameters.country;
  if (exit === undefined) return { start, proxy: undefined };
  const proxy = proxies[exit] ?? (exit === 'tor' ? undefined : proxies['*']);
  // Checked at the push; the operator may have taken it away since.
  if (proxy === undefined) return { refused: 'proxy_not_configured' };
  return { start, proxy: proxy === 'direct' ? undefined : proxy };
}

/** The crawl's page, or a failed one whatever it throws; rejects only with the signal's reason. */
export async function asFailedPage(
  task: CrawlTask,
  signal: AbortSignal,
  logger: Logger,
  crawl: () => Promise<Page>,
): Promise<Page> {
  signal.throwIfAborted();
  try {
    return await crawl();
  } catch (error) {
    signal.throwIfAborted();
    // Its message may quote what a site sent, or the URL; where it was thrown is enough to find it.
    const { name, stack = '' } = error instanceof Error ? error : new Error('not an Error');
    const at = stack.split('\n').filter((line) => line.startsWith('    at '));
    logger.error({ error: name, at: at.slice(0, 5) }, 'a crawl failed inside');
    return failedPage(task, 'engine_failed');
  }
}
