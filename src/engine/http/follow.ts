import { defined } from '../../domain/defined.ts';
import type { CrawlRequest } from '../../domain/job.ts';
import type { CrawlStep } from '../../domain/job-try.ts';
import type { FailureReason } from '../../domain/status.ts';
import type { Claimant } from '../../fairness/fair-pool.ts';
import { type HttpClient, HttpError, type HttpResponse, type Room } from '../../net/http-client.ts';
import { errorCode } from '../../net/http-failures.ts';
import { headerValues } from '../../net/raw-headers.ts';
import type { Cookies } from '../cookies.ts';
import { MAX_REDIRECTS } from '../engine.ts';
import { type Hop, nextHop, REFUSALS } from './redirect.ts';
import { requestHeaders } from './request-headers.ts';
import type { CrawlerIdentity } from './user-agents.ts';

/** A page to request, and how. */
export interface FollowInput {
  readonly client: Pick<HttpClient, 'request'>;
  readonly request: CrawlRequest;
  /** The address of the first request. */
  readonly start: URL;
  /** Sent and updated with each request. */
  readonly cookies: Cookies;
  readonly proxy: string | undefined;
  /** When the last request must have ended, on the scale of `performance.now()`. */
  readonly deadline: number;
  /** For each body. */
  readonly maxBodyBytes: number;
  /** See `HttpRequest.cutsBody`. */
  readonly cutsBody?: boolean | undefined;
  readonly signal: AbortSignal | undefined;
  /** Memory for the bodies. */
  readonly room?: Room | undefined;
  /** Default `named`. */
  readonly identity?: CrawlerIdentity | undefined;
  /** On whose behalf. */
  readonly claimant?: Claimant | undefined;
  /** Called when a request was written. */
  readonly onSent?: (() => void) | undefined;
  /** See `HttpRequest.onBytes`. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** Where a chain of requests ended. */
export interface FollowResult {
  /** The last request. */
  readonly hop: Hop;
  readonly redirected: boolean;
  /** The last response; absent when the last request got none. */
  readonly response?: HttpResponse;
  /** The head of a last response whose body could not be read. */
  readonly head?: HttpError['head'];
  /** Why the chain ended without a usable page. */
  readonly failure?: FailureReason;
  /** See `JobTry.detail`. */
  readonly detail?: string | undefined;
  /** `redirects`, all together, then the parts of the last request. */
  readonly steps?: readonly CrawlStep[];
}

const CONNECT_TIMEOUT_MS = 20_000;
const NOTHING = new Uint8Array(0);
/** Failures that may be those of a body alone. */
const OF_BODIES: ReadonlySet<FailureReason> = new Set([
  'body_too_large',
  'connection_failed',
  'decoding_failed',
  'protocol_error',
  'timeout',
  'too_many_encodings',
]);
/** For the body of a redirect: some servers announce one and do not send it. */
const REDIRECT_BODY_MS = 2_000;

/**
 * Requests a page and follows its redirects, at most {@link MAX_REDIRECTS}, with cookies. A request that repeats an
 * earlier one exactly is a loop; the same address with other cookies is not. A failure is a result,
 * too; rejects only with the signal's reason.
 */
export async function follow(input: FollowInput): Promise<FollowResult> {
  const startedAt = performance.now();
  let redirectedAt = startedAt;
  const result = await followAll(input, () => {
    redirectedAt = performance.now();
  });
  const ofLast = result.response?.steps ?? result.steps ?? [];
  const redirectsMs = Math.round(redirectedAt - startedAt);
  return { ...result, steps: redirectsMs > 0 ? [['redirects', redirectsMs], ...ofLast] : ofLast };
}

async function followAll(input: FollowInput, onRedirect: () => void): Promise<FollowResult> {
  const { request, cookies } = input;
  const visited = new Set<string>();
  let hop: Hop = {
    url: input.start,
    method: request.method,
    withBody: request.body !== undefined && request.method !== 'GET',
    sameOrigin: true,
  };
  let from: Pick<FollowResult, 'hop' | 'redirected' | 'head'> | undefined;
  for (let redirects = 0; ; redirects += 1) {
    const redirected = redirects > 0;
    const cookie = cookies.headerFor(hop.url.href);
    visited.add(requestIdentity(hop, cookie));
    const sent = await send(input, hop, cookie);
    if ('failure' in sent) {
      // What may not be requested is the fault of the response that named it.
      const isRefused = REFUSALS.has(sent.failure);
      return isRefused && from !== undefined
        ? { ...from, failure: sent.failure }
        : { hop, redirected, ...sent };
    }
    const { response } = sent;
    cookies.receive(hop.url.href, headerValues(response.headers, 'set-cookie'));
    const next = nextHop(hop, response.status, headerValues(response.headers, 'location')[0]);
    if (next === undefined) return { hop, redirected, response };
    if (next === 'invalid_redirect') return { hop, redirected, response, failure: next };
    if (visited.has(requestIdentity(next, cookies.headerFor(next.url.href)))) {
      return { hop, redirected, response, failure: 'redirect_loop' };
    }
    if (redirects >= MAX_REDIRECTS) {
      return { hop, redirected, response, failure: 'too_many_redirects' };
    }
    // Nobody reads the body of a redirect.
    input.room?.reset();
    onRedirect();
    from = { hop, redirected, head: { status: response.status, headers: response.headers } };
    hop = next;
  }
}

/** Sends one request of a chain. */
async function send(
  input: FollowInput,
  hop: Hop,
  cookie: string,
): Promise<
  | { readonly response: HttpResponse }
  | (Pick<FollowResult, 'head' | 'steps' | 'detail'> & { readonly failure: FailureReason })
> {
  const { client, request, deadline, maxBodyBytes, claimant, room, proxy, signal } = input;
  const { onSent, onBytes } = input;
  const timeoutMs = deadline - performance.now();
  if (timeoutMs <= 0) return { failure: 'timeout' };
  try {
    const response = await client.request({
      url: hop.url,
      method: hop.method,
      headers: requestHeaders(request, hop, cookie, input.identity),
      timeoutMs,
      connectTimeoutMs: Math.min(timeoutMs, CONNECT_TIMEOUT_MS),
      bodyTimeoutMs: (head) => (leadsOn(hop, head) ? REDIRECT_BODY_MS : undefined),
      maxBodyBytes,
      lenient: true,
      claimant,
      ...defined({
        body: hop.withBody ? request.body : undefined,
        cutsBody: input.cutsBody,
        room,
        proxy,
        signal,
        onSent,
        onBytes,
      }),
    });
    return { response };
  } catch (error) {
    signal?.throwIfAborted();
    if (!(error instanceof HttpError)) throw error;
    // The crawl was not aborted, so the client was closed.
    const failure = error.code === 'aborted' ? 'connection_failed' : error.code;
    const { head, steps } = error;
    const isTimeLeft = performance.now() < deadline;
    if (head !== undefined && isTimeLeft && OF_BODIES.has(failure) && leadsOn(hop, head)) {
      return { response: { ...head, body: NOTHING, answerMs: 0, steps } };
    }
    return { failure, head, steps, detail: errorCode(error.cause) || undefined };
  }
}

/** Whether a response is a redirect that can be followed: browsers do not read its body. */
function leadsOn(hop: Hop, { status, headers }: NonNullable<HttpError['head']>): boolean {
  const next = nextHop(hop, status, headerValues(headers, 'location')[0]);
  return next !== undefined && next !== 'invalid_redirect';
}

function requestIdentity(hop: Hop, cookie: string): string {
  const { origin, pathname, search } = hop.url;
  return `${hop.method} ${origin}${pathname}${search}\n${cookie}`;
}
