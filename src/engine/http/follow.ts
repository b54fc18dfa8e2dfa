import type { CrawlRequest } from '../../domain/job.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { Claimant } from '../../fairness/fair-pool.ts';
import { type HttpClient, HttpError, type HttpResponse, type Room } from '../../net/http-client.ts';
import type { Cookies } from '../cookies.ts';
import { type Hop, nextHop } from './redirect.ts';
import { requestHeaders } from './request-headers.ts';

/** One crawl on its way through redirects. */
export interface FollowInput {
  readonly client: Pick<HttpClient, 'request'>;
  readonly request: CrawlRequest;
  readonly start: URL;
  readonly cookies: Cookies;
  readonly proxy: string | undefined;
  /** When the whole must have ended, on the scale of `performance.now()`. */
  readonly deadline: number;
  readonly maxBodyBytes: number;
  readonly signal: AbortSignal | undefined;
  /** Memory for the bodies. */
  readonly room?: Room | undefined;
  /** On whose behalf. */
  readonly claimant?: Claimant | undefined;
}

/** Where a journey ended. */
export interface FollowResult {
  /** Of the last request. */
  readonly hop: Hop;
  readonly redirected: boolean;
  /** The last answer; absent when the last request got none. */
  readonly answer?: HttpResponse;
  /** What had arrived of a last answer whose body was then not to be had. */
  readonly head?: HttpError['head'];
  /** Why the last answer, or the lack of one, is no end of a page's kind. */
  readonly failure?: FailureReason;
}

/**
 * As many as browsers of old followed, and half of what they follow now: honest chains are shorter.
 */
const MAX_REDIRECTS = 10;
/** A host that takes longer to accept a connection is as good as down. */
const CONNECT_TIMEOUT_MS = 20_000;

/**
 * Requests a page and follows its redirects, at most ten, cookies included. A request that repeats
 * an earlier one of the journey exactly is a loop; the same address with other cookies is not.
 * Failures are arrivals; throws the signal's reason when aborted.
 */
export async function follow(journey: FollowInput): Promise<FollowResult> {
  const { client, request, cookies, signal } = journey;
  const visited = new Set<string>();
  let hop: Hop = {
    url: journey.start,
    method: request.method,
    withBody: request.body !== undefined && request.method !== 'GET',
    sameOrigin: true,
  };
  for (let redirects = 0; ; redirects += 1) {
    const redirected = redirects > 0;
    const cookie = cookies.headerFor(hop.url.href);
    visited.add(identity(hop, cookie));
    const timeoutMs = journey.deadline - performance.now();
    if (timeoutMs <= 0) return { hop, redirected, failure: 'timeout' };
    let answer: HttpResponse;
    try {
      answer = await client.request({
        url: hop.url.href,
        method: hop.method,
        headers: requestHeaders(request, hop, cookie),
        ...(hop.withBody && request.body !== undefined ? { body: request.body } : {}),
        timeoutMs,
        connectTimeoutMs: Math.min(timeoutMs, CONNECT_TIMEOUT_MS),
        maxBodyBytes: journey.maxBodyBytes,
        ...(journey.room === undefined ? {} : { room: journey.room }),
        claimant: journey.claimant,
        ...(journey.proxy === undefined ? {} : { proxy: journey.proxy }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof HttpError)) throw error;
      // Without an abort of ours it is the client that was closed.
      const failure = error.code === 'aborted' ? 'connection_failed' : error.code;
      return { hop, redirected, failure, head: error.head };
    }
    cookies.receive(hop.url.href, valuesOf(answer, 'set-cookie'));
    const next = nextHop(hop, answer.status, valuesOf(answer, 'location')[0]);
    if (next === undefined) return { hop, redirected, answer };
    if (next === 'invalid_redirect') return { hop, redirected, answer, failure: next };
    if (visited.has(identity(next, cookies.headerFor(next.url.href)))) {
      return { hop, redirected, answer, failure: 'redirect_loop' };
    }
    if (redirects >= MAX_REDIRECTS) {
      return { hop, redirected, answer, failure: 'too_many_redirects' };
    }
    // The body of a redirect is nobody's.
    journey.room?.reset();
    hop = next;
  }
}

/** The values of a header, in order. */
export function valuesOf(answer: HttpResponse, name: string): string[] {
  return answer.headers.filter(([each]) => each === name).map(([, value]) => value);
}

function identity(hop: Hop, cookie: string): string {
  const { origin, pathname, search } = hop.url;
  return `${hop.method} ${origin}${pathname}${search}\n${cookie}`;
}
