import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Claimant } from '../fairness/fair-pool.ts';
import { createAddressGuard, type GatewayError } from './address-guard.ts';
import { assertValidRequest } from './assert-valid-request.ts';
import { ACCEPT_ENCODING } from './content-decoder.ts';
import type { HttpClient, HttpError, HttpRequest, HttpResponse } from './http-client.ts';
import { httpError, toHttpError } from './http-failures.ts';
import { dispatchingFor, type Lookup } from './lookup.ts';
import type { NetworkSettings } from './network-settings.ts';
import { createOriginPools } from './origin-pools.ts';
import { createResolver } from './resolver.ts';
import { ExchangeError, runExchange } from './run-request.ts';
import { basicAuthorization, effectivePort } from './url-parts.ts';

/** A connection that was refused, for who keeps watch over attempts. */
export interface RefusedConnection {
  readonly hostname: string;
  readonly port: number;
  readonly refusal: GatewayError;
  readonly claimant: Claimant | undefined;
}

/** What the client is made of; only `allow` has no default. The settings are plain values. */
export interface HttpClientDeps extends NetworkSettings {
  /** Default: one of its own, over the settings' name servers. */
  readonly lookup?: Lookup;
  /** Told of every request that was refused for where it led. */
  readonly onRefused?: ((refused: RefusedConnection) => void) | undefined;
  /** Certificate authorities, PEM, in place of node's own. */
  readonly ca?: string;
  /** Offer HTTP/2 to https servers; default true. */
  readonly http2?: boolean;
  /** Origins whose connections are kept; default 256. */
  readonly maxOrigins?: number;
}

/**
 * Bodies beyond this are sent in pieces, so that the time for the answer counts from when the last
 * was taken.
 */
const WHOLE_BODY_BYTES = 65_536;
/** Methods a server may be asked twice without harm (RFC 9110, 9.2.2). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/**
 * Makes the client; it opens connections on demand and keeps them per origin. `close` ends them
 * all, exchanges under way included. The proxies are the operator's own and may be at private
 * addresses; https targets, and http ones as well, are reached by CONNECT, so that a proxy sees no
 * headers.
 */
export function createHttpClient(deps: HttpClientDeps): HttpClient {
  const { ca, http2 = true, maxOrigins = 256, dnsServers = [], torProxy, proxyTarget } = deps;
  const guard = createAddressGuard(deps.allow, { deny: deps.deny });
  const lookup = deps.lookup ?? createResolver({ servers: dnsServers });
  const pools = createOriginPools({ guard, lookup, ca, http2, maxOrigins, torProxy, proxyTarget });
  const running = new Set<AbortController>();

  function dispatching<Result>(request: HttpRequest, work: () => Result): Result {
    return request.claimant === undefined ? work() : dispatchingFor.run(request.claimant, work);
  }

  function failureOf(error: unknown, url: URL, request: HttpRequest): HttpError {
    const failure = toHttpError(error, false);
    const { code } = failure;
    if (code === 'address_not_allowed' || code === 'port_not_allowed') {
      const { hostname } = url;
      deps.onRefused?.({
        hostname,
        port: effectivePort(url),
        refusal: code,
        claimant: request.claimant,
      });
    }
    return failure;
  }

  async function exchange(
    url: URL,
    request: HttpRequest,
    startedAt: number,
  ): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt += 1) {
      const pool = pools.acquire(url, request.proxy);
      const before = pool.connections();
      let reused = false;
      try {
        return await dispatching(request, () =>
          runExchange({
            dispatcher: pool.dispatcher,
            options: dispatchOptions(url, request),
            request,
            timeoutMs: request.timeoutMs - (performance.now() - startedAt),
            onStart() {
              reused = pool.connections() === before;
            },
            onDone: (taken) => pool.release(taken),
          }),
        );
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        // The server closed a kept connection just as the request was on its way: not the request's
        // fault.
        const stale =
          reused && !error.answered && error.failure.code === 'connection_failed' && attempt === 1;
        if (!stale || !REPEATABLE.has(request.method)) throw error.failure;
      }
    }
  }

  return {
    async request(given) {
      const url = URL.parse(given.url);
      if (url === null || !/^https?:$/.test(url.protocol)) throw httpError('invalid_url');
      assertValidRequest(given);
      const closing = new AbortController();
      running.add(closing);
      const signal =
        given.signal === undefined
          ? closing.signal
          : AbortSignal.any([given.signal, closing.signal]);
      const request = { ...given, signal };
      try {
        return await exchange(url, request, performance.now());
      } catch (error) {
        throw failureOf(error, url, request);
      } finally {
        running.delete(closing);
      }
    },
    async close() {
      for (const closing of running) closing.abort(new Error('the client was closed'));
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
  if (request.decode !== false && !names.has('accept-encoding')) {
    headers.push('accept-encoding', ACCEPT_ENCODING);
  }
  const authorization = basicAuthorization(url);
  if (authorization !== undefined && !names.has('authorization')) {
    headers.push('authorization', authorization);
  }
  const { body } = request;
  const inPieces = body !== undefined && body.length > WHOLE_BODY_BYTES;
  if (inPieces) headers.push('content-length', `${body.length}`);
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    method: request.method,
    headers,
    body: inPieces ? Readable.from(piecesOf(body)) : (body ?? null),
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

function* piecesOf(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += WHOLE_BODY_BYTES) {
    yield body.subarray(at, at + WHOLE_BODY_BYTES);
  }
}
