import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { hostilePage } from './hostile-pages.ts';
import { listen } from './listen.ts';

/** A site to crawl, on a free port of 127.0.0.1. The paths are listed at {@link startSite}. */
export interface Site extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string;
  /** `127.0.0.1:PORT`, for `NETWORK_ALLOW`. */
  readonly host: string;
  readonly port: number;
  /** Requests for one path (without its query), or for all. */
  hits(path?: string): number;
  /** Most requests under way at one moment so far. */
  readonly maxConcurrent: number;
  /** Requests under way. */
  readonly concurrent: number;
  /** Connections opened so far. */
  readonly connections: number;
  /** Every request as it arrived, oldest first. */
  readonly seen: readonly SeenRequest[];
  /** Forgets all counters and what `/flaky` has counted. */
  reset(): void;
}

/** One request, without its body. */
export interface SeenRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The address that it came from. */
  readonly from: string;
  readonly at: Date;
}

/** Answers the paths of its own on top of the site's. */
export type SiteRoute = (request: IncomingMessage, response: ServerResponse, url: URL) => void;

/**
 * Starts a {@link Site}.
 *
 * - `/page/N?size=BYTES&delay=MS`: an HTML page titled `Page N`, at least `size` bytes, after `delay`
 * - `/status/CODE?retry-after=S`: that status and a short HTML page
 * - `/echo`: method, path, headers and body as JSON
 * - `/flaky/KEY?fails=N&status=503`: fails N times for each KEY, then is a page
 * - `/delay/MS`, `/hang`: answers late, never
 * - `/redirect/N?status=302`: N redirects, then `/page/0`; `/redirect-to?url=&status=`; `/loop`: redirects to itself
 * - `/cookies/set?NAME=VALUE&to=PATH`: sets cookies, redirects to `to` when given
 * - `/empty`: 200 without a body
 * - `/robots.txt`: `robotsTxt`, else 404
 * - `/hostile/...`: see `hostile-pages.ts`
 *
 * `routes` are exact paths of the test's own.
 */
export async function startSite(
  options: {
    readonly port?: number;
    readonly robotsTxt?: string;
    readonly routes?: Readonly<Record<string, SiteRoute>>;
  } = {},
): Promise<Site> {
  const seen: SeenRequest[] = [];
  const hits = new Map<string, number>();
  const fails = new Map<string, number>();
  const timers = new Set<NodeJS.Timeout>();
  let connections = 0;
  let concurrent = 0;
  let maxConcurrent = 0;

  const later = (ms: number, then: () => void): void => {
    if (!(ms > 0)) return then();
    const timer = setTimeout(() => {
      timers.delete(timer);
      then();
    }, ms);
    timers.add(timer);
  };

  const pages: Readonly<Record<string, (context: PageContext) => void>> = {
    page({ response, rest, query }) {
      later(Number(query.get('delay') ?? 0), () =>
        html(response, 200, pageHtml(rest, Number(query.get('size') ?? 0))),
      );
    },
    status({ response, rest, query }) {
      const retryAfter = query.get('retry-after');
      if (retryAfter !== null) response.setHeader('retry-after', retryAfter);
      html(response, Number(rest), pageHtml(`status ${rest}`, 0));
    },
    echo: ({ request, response }) => void echo(request, response),
    flaky({ response, rest, query }) {
      const failed = fails.get(rest) ?? 0;
      if (failed < Number(query.get('fails') ?? 1)) {
        fails.set(rest, failed + 1);
        html(response, Number(query.get('status') ?? 503), pageHtml(`failure ${failed + 1}`, 0));
      } else html(response, 200, pageHtml(rest, 0));
    },
    delay({ response, rest }) {
      later(Number(rest), () => html(response, 200, pageHtml(`after ${rest} ms`, 0)));
    },
    hang: () => undefined,
    redirect({ response, rest, query }) {
      const left = Number(rest);
      const status = Number(query.get('status') ?? 302);
      redirect(response, status, left > 1 ? `/redirect/${left - 1}?status=${status}` : '/page/0');
    },
    'redirect-to'({ response, query }) {
      redirect(response, Number(query.get('status') ?? 302), query.get('url') ?? '/');
    },
    loop: ({ response }) => redirect(response, 302, '/loop'),
    cookies({ response, query }) {
      const to = query.get('to');
      query.delete('to');
      response.setHeader(
        'set-cookie',
        [...query].map(([name, value]) => `${name}=${value}; Path=/`),
      );
      if (to === null) html(response, 200, pageHtml('cookies', 0));
      else redirect(response, 302, to);
    },
    empty: ({ response }) => void response.writeHead(200, { 'content-type': 'text/html' }).end(),
    'robots.txt'({ response }) {
      response.writeHead(options.robotsTxt === undefined ? 404 : 200, {
        'content-type': 'text/plain',
      });
      response.end(options.robotsTxt);
    },
    hostile: ({ request, response, rest, query }) =>
      hostilePage({ request, response, name: rest, query, later }),
  };

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const url = new URL(request.url ?? '/', 'http://site');
    seen.push({
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      from: request.socket.remoteAddress ?? '',
      at: new Date(),
    });
    hits.set(url.pathname, (hits.get(url.pathname) ?? 0) + 1);
    concurrent += 1;
    maxConcurrent = Math.max(maxConcurrent, concurrent);
    response.once('close', () => {
      concurrent -= 1;
    });
    response.on('error', ignoreBrokenConnection);
    const own = options.routes?.[url.pathname];
    if (own !== undefined) return own(request, response, url);
    const [, first = '', rest = ''] = /^\/([^/]*)\/?(.*)$/.exec(url.pathname) ?? [];
    const page = pages[first === '' ? 'page' : first];
    if (page === undefined) html(response, 404, pageHtml('not found', 0));
    else page({ request, response, rest, query: url.searchParams });
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.on('clientError', (_error, socket) => socket.destroy());

  const open = await listen(server, options.port);
  const { port } = open;

  return {
    url: `http://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    port,
    seen,
    hits: (path) => (path === undefined ? seen.length : (hits.get(path) ?? 0)),
    get maxConcurrent() {
      return maxConcurrent;
    },
    get concurrent() {
      return concurrent;
    },
    get connections() {
      return connections;
    },
    reset() {
      seen.length = 0;
      hits.clear();
      fails.clear();
      maxConcurrent = concurrent;
    },
    [Symbol.asyncDispose]: async () => {
      for (const timer of timers) clearTimeout(timer);
      await open[Symbol.asyncDispose]();
    },
  };
}

interface PageContext {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The path after its first segment. */
  readonly rest: string;
  readonly query: URLSearchParams;
}

/** The HTML of `/page/N`: what a test compares a crawled body with. */
export function pageHtml(name: string, size: number): string {
  const start = `<!doctype html><html><head><meta charset="utf-8"><title>Page ${name}</title></head><body><h1>Page ${name}</h1>`;
  const end = '</body></html>\n';
  return start + 'lorem ipsum '.repeat(Math.ceil(Math.max(0, size - start.length) / 12)) + end;
}

function html(response: ServerResponse, status: number, body: string): void {
  const bodiless = status === 204 || status === 304;
  response.writeHead(status, { 'content-type': 'text/html; charset=utf-8' });
  response.end(bodiless ? undefined : body);
}

function redirect(response: ServerResponse, status: number, location: string): void {
  response.writeHead(status, { location }).end();
}

async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { method, url: path, headers } = request;
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({ method, path, headers, body: Buffer.concat(chunks).toString('utf8') }),
  );
}

function ignoreBrokenConnection(): void {
  // A client that goes away is what several tests are about.
}
