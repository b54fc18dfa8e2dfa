import { createServer } from 'node:http';
import { listen } from '../listen.ts';

/** What the site has seen of one crawler. */
export interface SeenCrawls {
  /** Requests under way. */
  inFlight: number;
  /** Most requests under way at one moment. */
  most: number;
  /** Requests for each page, by its number. */
  readonly requests: Map<number, number>;
  /** When each page was asked for first, in ms of `performance.now`. */
  readonly firstAt: Map<number, number>;
  /** Requests beyond the first of their page, without tries after a failure of the site. */
  again: number;
}

/** A site that counts what each crawler does, and that forgets nothing but the pages themselves. */
export interface ChaosSite extends AsyncDisposable {
  /** The address of a page; its first `fails` requests are answered with 503. */
  page(crawler: string, n: number, delayMs: number, fails: number): string;
  seen(crawler: string): SeenCrawls;
}

const PAGE = `<!doctype html><title>Page</title>${'<p>Some text of a page.</p>'.repeat(40)}`;

/** Opens a {@link ChaosSite} on a free port. */
export async function openChaosSite(): Promise<ChaosSite> {
  const all = new Map<string, SeenCrawls>();
  const timers = new Set<NodeJS.Timeout>();

  function seen(crawler: string): SeenCrawls {
    let found = all.get(crawler);
    if (found === undefined) {
      found = { inFlight: 0, most: 0, requests: new Map(), firstAt: new Map(), again: 0 };
      all.set(crawler, found);
    }
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
    crawls.inFlight += 1;
    // Others may have been aborted before this one, and their end be reported after it.
    setImmediate(() => {
      crawls.most = Math.max(crawls.most, crawls.inFlight);
    });
    let underWay = true;
    // A client may begin its next request as soon as the first byte has been sent.
    const end = (): void => {
      if (underWay) crawls.inFlight -= 1;
      underWay = false;
    };
    const timer = setTimeout(
      () => {
        timers.delete(timer);
        end();
        response.writeHead(nth <= fails ? 503 : 200, { 'content-type': 'text/html' }).end(PAGE);
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
  const open = await listen(server);
  return {
    page: (crawler, n, delayMs, fails) =>
      `http://127.0.0.1:${open.port}/${crawler}/${n}?delay=${delayMs}&fails=${fails}`,
    seen,
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearTimeout(timer);
      await open[Symbol.asyncDispose]();
    },
  };
}
