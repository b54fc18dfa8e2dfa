import { createServer } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { listen } from '../listen.ts';

/** Requests under way. */
interface UnderWay {
  inFlight: number;
  /** Most at one moment. */
  most: number;
}

/** What one host of the site has seen of one crawler. */
export interface SeenHost extends UnderWay {
  /** When its requests came, in ms of `performance.now`: between these two moments, as this process was busy. */
  readonly starts: { readonly fromMs: number; readonly toMs: number }[];
}

/** What the site has seen of one crawler. */
export interface SeenCrawls extends UnderWay {
  readonly hosts: Map<string, SeenHost>;
  /** Requests for each page, by its number. */
  readonly requests: Map<number, number>;
  /** When each page was asked for first, in ms of `performance.now`. */
  readonly firstAt: Map<number, number>;
  /** Requests beyond the first of their page, without tries after a failure of the site. */
  again: number;
}

/** A site that counts what each crawler does, and that forgets nothing but the pages themselves. */
export interface ChaosSite extends AsyncDisposable {
  /** The address of a page on one of `hosts`, by default a single one; its first `fails` requests are answered with 500, which slows no host down. */
  page(crawler: string, n: number, delayMs: number, fails: number, hosts?: number): string;
  seen(crawler: string): SeenCrawls;
}

/** How often it notes that it has seen all requests so far. */
const LOOK_MS = 5;

const PAGE = `<!doctype html><title>Page</title>${'<p>Some text of a page.</p>'.repeat(40)}`;

/** Opens a {@link ChaosSite} on a free port. */
export async function openChaosSite(): Promise<ChaosSite> {
  const all = new Map<string, SeenCrawls>();
  const timers = new Set<NodeJS.Timeout>();
  let accepted = 0;
  let seenUpTo = performance.now();
  const watch = setInterval(() => {
    const now = performance.now();
    void untilAccepted().then(() => {
      seenUpTo = now;
    });
  }, LOOK_MS);

  /**
   * Resolves when the requests that have come until now are handled. The event loop accepts one
   * connection a turn, and reads it in the next.
   */
  async function untilAccepted(): Promise<void> {
    let before: number;
    do {
      before = accepted;
      await nextTurn();
    } while (accepted > before);
    await nextTurn();
  }

  function seen(crawler: string): SeenCrawls {
    let found = all.get(crawler);
    if (found === undefined) {
      found = {
        inFlight: 0,
        most: 0,
        hosts: new Map(),
        requests: new Map(),
        firstAt: new Map(),
        again: 0,
      };
      all.set(crawler, found);
    }
    return found;
  }

  function seenAt(crawls: SeenCrawls, host = ''): SeenHost {
    const found = crawls.hosts.get(host) ?? { inFlight: 0, most: 0, starts: [] };
    crawls.hosts.set(host, found);
    return found;
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    const url = new URL(request.url ?? '/', 'http://site');
    const [, crawler = '', number = ''] = url.pathname.split('/');
    const n = Number(number);
    const fails = Number(url.searchParams.get('fails'));
    const crawls = seen(crawler);
    const nth = (crawls.requests.get(n) ?? 0) + 1;
    crawls.requests.set(n, nth);
    if (nth === 1) crawls.firstAt.set(n, performance.now());
    if (nth > 1 + fails) crawls.again += 1;
    const atHost = seenAt(crawls, request.headers.host);
    atHost.starts.push({ fromMs: seenUpTo, toMs: performance.now() });
    const counts: readonly UnderWay[] = [crawls, atHost];
    for (const count of counts) count.inFlight += 1;
    // Others may have been aborted before this one, and their end be reported after it.
    setImmediate(() => {
      for (const count of counts) count.most = Math.max(count.most, count.inFlight);
    });
    let underWay = true;
    // A client may begin its next request as soon as the first byte has been sent.
    const end = (): void => {
      if (underWay) for (const count of counts) count.inFlight -= 1;
      underWay = false;
    };
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        end();
        response.writeHead(nth <= fails ? 500 : 200, { 'content-type': 'text/html' }).end(PAGE);
      },
      Number(url.searchParams.get('delay')),
    );
    timers.add(timer);
    // The end of what the client sends says that it left; the response closes a little later.
    request.socket.once('end', end);
    response.once('close', () => {
      request.socket.off('end', end);
      clearTimeout(timer);
      timers.delete(timer);
      end();
    });
    response.on('error', () => response.destroy());
  });
  server.on('connection', () => {
    accepted += 1;
  });
  // Each address of 127.0.0.0/8 is a host.
  const open = await listen(server, 0, '0.0.0.0');
  return {
    page: (crawler, n, delayMs, fails, hosts = 1) =>
      `http://127.0.0.${1 + (n % hosts)}:${open.port}/${crawler}/${n}?delay=${delayMs}&fails=${fails}`,
    seen,
    async [Symbol.asyncDispose]() {
      clearInterval(watch);
      for (const timer of timers) clearTimeout(timer);
      await open[Symbol.asyncDispose]();
    },
  };
}
