import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { createTransientSet } from '../domain/transient-map.ts';
import { createAddressGuard } from './address-guard.ts';
import { assertValidRequest } from './assert-valid-request.ts';

import { ACCEPT_ENCODING } from './content-decoder.ts';
import { type FailureReports, reportFailure } from './failure-reports.ts';
import { makeHeadersOverflowCheap } from './headers-overflow.ts';
import type {
  HttpClient,
  HttpError,
  HttpFailure,
  HttpRequest,
  HttpResponse,
  RequestBody,
} from './http-client.ts';
import { httpError, isRefused, toHttpError } from './http-failures.ts';
import { mendHttp2Streams } from './http2-streams.ts';
import { dispatchingFor, type Lookup } from './lookup.ts';
import type { NetworkSettings } from './network-settings.ts';
import { createOriginPools } from './origin-pools.ts';
import { createProxyTraffic } from './proxy-traffic.ts';
import { createResolver } from './resolver.ts';
import { ExchangeError, HeldBack, isBroken, runExchange } from './run-exchange.ts';
import { basicAuthorization, effectivePort, pathAndQuery } from './url-parts.ts';

/** How the client connects; only `allow` has no default. The settings are plain values. */
export interface HttpClientDeps extends NetworkSettings, FailureReports {
  /** Default: a resolver that asks the name servers of the settings. */
  readonly lookup?: Lookup;
  /** Asked when a request is about to be written to a connection; it waits for what is returned. */
  readonly ready?: (signal?: AbortSignal) => Promise<void> | undefined;
  /** Certificate authorities, PEM, in place of Node's own. */
  readonly ca?: string;
  /** Offer HTTP/2 to https servers; default true. */
  readonly http2?: boolean;
  /** Origins whose connections are kept; default 256. */
  readonly maxOrigins?: number;
  /**
   * How long an idle connection is kept whose server does not say it; default 4,000. A server may close
   * it just when a request is sent on it, which only idempotent requests survive.
   */
  readonly idleMs?: number;
}

/**
 * Larger bodies are sent in pieces, so that the time limit for the response starts when the last
 * piece was taken.
 */
const WHOLE_BODY_BYTES = 65_536;
const IDLE_MS = 4_000;

makeHeadersOverflowCheap();
mendHttp2Streams();

/** Idempotent methods, which may be sent twice (RFC 9110, 9.2.2). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

const REQUEST_TIMEOUT = 408;

/** Whether a second connection failed, as where a server speaks only the protocol of the first one. */
const isUnreached = (code: HttpFailure): boolean =>
  code === 'tls_failed' || code === 'connection_failed' || code === 'connect_timeout';

/**
 * Whether a connection ended that had been made. An aggregate says that no address of a name took one. A refused
 * request is not repeated here, for undici repeats it once, and no client should more often (RFC 9113, 8.7).
 */
function hasEnded({ code, cause }: HttpError): boolean {
  if (code !== 'connection_failed' || !(cause instanceof Error)) return false;
  if (cause instanceof AggregateError || isRefused(cause)) return false;
  return (cause as NodeJS.ErrnoException).syscall !== 'connect';
}

/**
 * Makes the client. It opens connections on demand and keeps them per origin; `close` ends them
 * all, and the exchanges that use them. Proxies are chosen by the operator and may have private
 * addresses. Both https and http targets are reached by CONNECT, so a proxy sees no headers.
 */
export function createHttpClient(deps: HttpClientDeps): HttpClient {
  const { ca, http2 = true, maxOrigins = 256, dnsServers = [], torProxy, proxyTarget } = deps;
  const guard = createAddressGuard(deps.allow, { deny: deps.deny });
  const lookup = deps.lookup ?? createResolver({ servers: dnsServers });
  const traffic = createProxyTraffic();
  const pools = createOriginPools({
    onTunnel: traffic.track,
    guard,
    lookup,
    ca,
    http2,
    maxOrigins,
    idleMs: deps.idleMs ?? IDLE_MS,
    torProxy,
    proxyTarget,
  });
  /** Aborts the exchanges in progress. A signal of each request and one of the client cost more. */
  const running = createTransientSet<(cause: unknown) => void>();

  /** Runs `work` so that connections made for it find the request's claimant. */
  function dispatching<Result>(request: HttpRequest, work: () => Result): Result {
    return request.claimant === undefined ? work() : dispatchingFor.run(request.claimant, work);
  }

  /** The error as the caller sees it, after it was reported. */
  function toReportedError(error: unknown, url: URL, request: HttpRequest): HttpError {
    const failure = toHttpError(error);
    const { claimant } = request;
    reportFailure(deps, failure, { hostname: url.hostname, port: effectivePort(url), claimant });
    return failure;
  }

  async function exchange(
    url: URL,
    request: HttpRequest,
    startedAt: number,
  ): Promise<HttpResponse> {
    const { lenient = false, proxy: proxyUrl, maxBodyBytes, claimant } = request;
    const isRepeatable = request.mayRepeat ?? REPEATABLE.has(request.method);
    // A server that takes a client's body for the next request would answer another one with it.
    const hasOwnBody = lenient && request.body !== undefined;
    /** How the first response was broken. */
    let broken: HttpError | undefined;
    for (let fresh = hasOwnBody, repairs = false; ; ) {
      const { accountId } = claimant ?? {};
      const pool = pools.acquire(url, { accountId, proxyUrl, repairs, fresh, maxBodyBytes });
      const before = pool.connections();
      // An origin that never answers is not asked twice.
      const mayBeStale = (): boolean => isRepeatable && !fresh && !repairs && pool.hadAnswers();
      try {
        const response = await dispatching(request, () =>
          runExchange({
            dispatcher: pool.dispatcher,
            options: dispatchOptions(url, request),
            request,
            timeoutMs: request.timeoutMs - (performance.now() - startedAt),
            endsEarly: lenient && (repairs || !isRepeatable),
            running,
            ready: deps.ready,
            onStart() {
              const isNew = pool.connections() > before;
              pool.started();
              return isNew ? pool.latest() : [];
            },
            onDone: (accepted) => pool.release(accepted),
          }),
        );
        // Some servers say so before they close an idle connection.
        const isClosing = REPEATABLE.has(request.method) && response.status === REQUEST_TIMEOUT;
        const isStale = isClosing && mayBeStale();
        pool.answered();
        if (!isStale) return response;
        fresh = true;
        request.room?.reset();
      } catch (error) {
        if (error instanceof HeldBack) {
          await error.until;
          continue;
        }
        if (!(error instanceof ExchangeError)) throw error;
        const { answered, failure } = error;
        if (!isRepeatable) throw failure;
        // The server may have closed an idle connection just as the request was sent on it.
        if (mayBeStale() && !answered && hasEnded(failure)) fresh = true;
        else if (
          lenient &&
          !repairs &&
          (answered || failure.code === 'protocol_error') &&
          isBroken(failure.code)
        ) {
          repairs = true;
          broken = failure;
          request.room?.reset();
        } else throw isUnreached(failure.code) ? (broken ?? failure) : failure;
      }
    }
  }

  return {
    async request(request) {
      const url = request.url instanceof URL ? request.url : URL.parse(request.url);
      if (url === null || !/^https?:$/.test(url.protocol)) throw httpError('invalid_url');
      assertValidRequest(request);
      const startedAt = performance.now();
      try {
        return await exchange(url, request, startedAt);
      } catch (error) {
        throw toReportedError(error, url, request);
      }
    },
    takeTraffic: traffic.take,
    async close() {
      for (const abort of running.values()) abort(new Error('the client was closed'));
      await pools.destroy();
    },
  };
}

function dispatchOptions(url: URL, request: HttpRequest): Dispatcher.DispatchOptions {
  const headers: string[] = [];
  const names = new Set<string>();
  for (const [name, value] of request.headers ?? []) {
    headers.push(name, value);
    names.add(name.toLowerCase());
  }
  if (!names.has('accept-encoding')) {
    headers.push('accept-encoding', ACCEPT_ENCODING);
  }
  const authorization = basicAuthorization(url);
  if (authorization !== undefined && !names.has('authorization')) {
    headers.push('authorization', authorization);
  }
  const body = dispatchBody(request.body);
  if (body instanceof Readable) headers.push('content-length', `${request.body?.byteLength}`);
  return {
    origin: url.origin,
    path: pathAndQuery(url),
    method: request.method,
    headers,
    body,
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

function dispatchBody(body: RequestBody | undefined): Readable | Uint8Array | null {
  if (body === undefined) return null;
  if (!(body instanceof Uint8Array)) return Readable.from(body, { highWaterMark: 1 });
  return body.byteLength > WHOLE_BODY_BYTES ? Readable.from(splitBody(body)) : body;
}

function* splitBody(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += WHOLE_BODY_BYTES) {
    yield body.subarray(at, at + WHOLE_BODY_BYTES);
  }
}
