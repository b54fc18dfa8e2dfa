import { defined } from '../domain/defined.ts';
import type { Logger } from '../domain/logger.ts';
import { type FailureReason, type StatusVerdict, verdictOnFailure } from '../domain/status.ts';
import type { CrawlTask, Page } from './engine.ts';

/** The page of a crawl that got no response. */
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
    ...failureFields(verdict, retryAfterMs),
  };
}

/** The page of a crawl that failed after the site had sent at least the head of a response. */
export function failedResponse(
  task: CrawlTask,
  reason: FailureReason,
  response: { readonly status: number; readonly headers: Page['headers']; readonly url: string },
): Page {
  const { status: originalStatus, headers, url } = response;
  return { ...failedPage(task, reason), originalStatus, headers, url };
}

/** The page, whose failure has a detail if one is given. */
export function withDetail(page: Page, detail: string | undefined): Page {
  const { failure } = page;
  if (failure === undefined || detail === undefined) return page;
  return { ...page, failure: { ...failure, detail } };
}

/** The `failure` of a page with this verdict; none for a crawl that succeeded. */
export function failureFields(
  verdict: StatusVerdict,
  retryAfterMs?: number,
): Pick<Page, 'failure'> {
  const { reason, transient } = verdict;
  if (reason === '') return {};
  return { failure: { reason, transient, ...defined({ retryAfterMs }) } };
}

/**
 * The page that `crawl` resolves to, or a failed one for whatever it throws. Rejects only with the
 * signal's reason.
 */
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
    // The message may quote the URL or what a site sent, so only the place is logged.
    const { name, stack = '' } = error instanceof Error ? error : new Error('not an Error');
    const at = stack.split('\n').filter((line) => line.startsWith('    at '));
    logger.error({ error: name, at: at.slice(0, 5) }, 'a crawl failed inside');
    return failedPage(task, 'engine_failed');
  }
}
