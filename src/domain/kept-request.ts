import { defined } from './defined.ts';
import type { HeaderPair, Job } from './job.ts';
import type { CrawlParameters } from './parameters.ts';
import { DEFAULT_PRIORITY } from './priority.ts';

/**
 * What a push asked for in addition to its URL: kept to push it again. Of a crawl that ended well a
 * request with a body, or a long one, is omitted.
 */
export interface KeptRequest {
  readonly method?: Job['method'] | undefined;
  readonly body?: Uint8Array | undefined;
  readonly contentType?: string | undefined;
  readonly parameters?: CrawlParameters | undefined;
  readonly callbackHeaders?: readonly HeaderPair[] | undefined;
  readonly priority?: number | undefined;
  /** Minutes. */
  readonly queueTimeout?: number | undefined;
  readonly omitted?: true | undefined;
}

/** The longest text that is kept of the request of a crawl that ended well. */
const MAX_SHORT_CHARACTERS = 1_000;

/** Like {@link keptRequestText}, of a crawl that ended well. */
export function shortRequestText(job: Job): string | undefined {
  const text = job.body === undefined ? keptRequestText(job) : undefined;
  const isShort = job.body === undefined && (text?.length ?? 0) <= MAX_SHORT_CHARACTERS;
  return isShort ? text : JSON.stringify({ omitted: true } satisfies KeptRequest);
}

/** The text of a job's request, as it is kept; undefined if its URL says it all. */
export function keptRequestText(job: Job): string | undefined {
  const { method, body, contentType, parameters, callbackHeaders, priority } = job;
  const { queueDeadline, notBefore = job.createdAt } = job;
  const waitMs = queueDeadline && queueDeadline.getTime() - notBefore.getTime();
  const kept = defined({
    method: method === 'GET' ? undefined : method,
    body: body && Buffer.from(body).toString('base64'),
    contentType,
    parameters: Object.keys(parameters).length === 0 ? undefined : parameters,
    callbackHeaders: callbackHeaders.length === 0 ? undefined : callbackHeaders,
    priority: priority === DEFAULT_PRIORITY ? undefined : priority,
    queueTimeout: waitMs && Math.round(waitMs / 60_000),
  });
  return Object.keys(kept).length === 0 ? undefined : JSON.stringify(kept);
}

/** Reads it. */
export function parseKeptRequest(text: string | undefined): KeptRequest {
  if (text === undefined) return {};
  const { body, ...kept } = JSON.parse(text) as Omit<KeptRequest, 'body'> & {
    readonly body?: string;
  };
  return body === undefined ? kept : { ...kept, body: Buffer.from(body, 'base64') };
}
