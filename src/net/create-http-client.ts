import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { createAddressGuard, parseAddress } from './address-guard.ts';
import { ACCEPT_ENCODING } from './content-decoder.ts';
import { ExchangeError, runExchange } from './exchange.ts';
import { notAllowed, permittedAnswers } from './guarded-connector.ts';
import { type HttpClient, HttpError, type HttpRequest, type HttpResponse } from './http-client.ts';
import { httpError, httpErrorFrom } from './http-failures.ts';
import { createCachedLookup, type Lookup, systemLookup } from './lookup.ts';
import type { NetworkAllow } from './network-allow.ts';
import { createOriginPools, portOf } from './origin-pools.ts';
import { createProxies } from './proxies.ts';
import { assertSendable } from './sendable.ts';

/** What the client is made of; only `allow` has no default. */
export interface HttpClientDeps {
  readonly allow: NetworkAllow;
  /** Default: the operating system's, remembered for ten seconds. */
  readonly lookup?: Lookup;
  /** Certificate authorities, PEM, in place of node's own. */
  readonly ca?: string;
  /** Offer HTTP/2 to https servers; default true. */
  readonly http2?: boolean;
  /** Origins whose connections are kept; default 256. */
  readonly maxOrigins?: number;
}

/** Bodies beyond this are sent in pieces, so that the time for the answer counts from when the last was taken. */
const WHOLE_BODY_BYTES = 65_536;
/** Methods a server may be asked twice without harm (RFC 9110, 9.2.2). */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/**
 * Makes the client; it opens connections on demand and keeps them per origin. `close` ends them all, exchanges under way included.
 *
 * Through a proxy, the proxy makes the connection and its addresses cannot be seen: the target's name is looked up here first, and every
 * answer must be permitted. A proxy whose DNS answers otherwise could still reach its own private network; choose proxies that
 * refuse that. Names under `.onion`, which no DNS knows, are left to the proxy.
 */
export function createHttpClient(deps: HttpClientDeps): HttpClient {
  const guard = createAddressGuard(deps.allow);
  const lookup = deps.lookup ?? createCachedLookup(systemLookup);
  const { ca, http2 = true, maxOrigins = 256 } = deps;
  const pools = createOriginPools({ guard, lookup, ca, http2, maxOrigins });
  const proxies = createProxies({ ca });
  const running = new Set<AbortController>();

  async function checkTarget(url: URL): Promise<void> {
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const port = portOf(url);
    if (hostname.endsWith('.onion')) return;
    if (parseAddress(hostname) === undefined) {
      await permittedAnswers({ guard, lookup, port }, hostname, true);
    } else if (!guard.permits({ hostname, address: hostname, port })) {
      throw notAllowed(hostname);
    }
  }

  async function direct(url: URL, request: HttpRequest, startedAt: number): Promise<HttpResponse> {
    for (let attempt = 1; ; attempt += 1) {
      const pool = pools.lend(url);
      const before = pool.connections();
      let reused = false;
      try {
        return await runExchange({
          dispatcher: pool.dispatcher,
          options: dispatchOptions(url, request),
          request,
          timeoutMs: request.timeoutMs - (performance.now() - startedAt),
          onStart() {
            reused = pool.connections() === before;
          },
          onDone: (taken) => pool.release(taken),
        });
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        // The server closed a kept connection just as the request was on its way: not the request's fault.
        const stale =
          reused && !error.answered && error.failure.code === 'connection_failed' && attempt === 1;
        if (!stale || !REPEATABLE.has(request.method)) throw error.failure;
      }
    }
  }

  async function proxied(url: URL, request: HttpRequest, proxy: string): Promise<HttpResponse> {
    const startedAt = performance.now();
    await withinLimits(checkTarget(url), request);
    try {
      return await runExchange({
        dispatcher: proxies.dispatcher(proxy),
        options: dispatchOptions(url, request),
        request,
        timeoutMs: request.timeoutMs - (performance.now() - startedAt),
        onStart: () => undefined,
        onDone: () => undefined,
      });
    } catch (error) {
      throw error instanceof ExchangeError ? error.failure : error;
    }
  }

  return {
    async request(given) {
      const url = URL.parse(given.url);
      if (url === null || !/^https?:$/.test(url.protocol)) throw httpError('invalid_url');
      assertSendable(given);
      const closing = new AbortController();
      running.add(closing);
      const signal =
        given.signal === undefined
          ? closing.signal
          : AbortSignal.any([given.signal, closing.signal]);
      const request = { ...given, signal };
      try {
        return given.proxy === undefined
          ? await direct(url, request, performance.now())
          : await proxied(url, request, given.proxy);
      } catch (error) {
        throw httpErrorFrom(error, false);
      } finally {
        running.delete(closing);
      }
    },
    async close() {
      for (const closing of running) closing.abort(new Error('the client was closed'));
      await Promise.all([pools.destroy(), proxies.destroy()]);
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
  if (url.username !== '' && !names.has('authorization')) {
    headers.push('authorization', `Basic ${credentialsOf(url)}`);
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

function credentialsOf(url: URL): string {
  const [name, password] = [url.username, url.password].map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      // A stray percent sign is meant literally.
      return part;
    }
  });
  return Buffer.from(`${name}:${password}`).toString('base64');
}

async function withinLimits(work: Promise<void>, request: HttpRequest): Promise<void> {
  const { timeoutMs, signal } = request;
  const settled = Promise.withResolvers<void>();
  const timer = setTimeout(() => settled.reject(httpError('connect_timeout')), timeoutMs);
  const onAbort = (): void =>
    settled.reject(new HttpError('aborted', 'aborted', { cause: signal?.reason }));
  signal?.addEventListener('abort', onAbort, { once: true });
  work.then(settled.resolve, settled.reject);
  try {
    await settled.promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
