import { eventually } from './eventually.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import { type ServiceProcess, startProcess } from './service-process.ts';
import { type Site, startSite } from './site.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { NORMAL } from './tokens.ts';

/** A service with crawlers in every state that the console shows. */
export interface ConsoleScene extends AsyncDisposable {
  readonly app: ServiceProcess;
  readonly site: Site;
  /** Takes what is delivered to crawler `shop`. */
  readonly receiver: Receiver;
  /** Pushes URLs of the site by their paths. Returns their rids. */
  push(crawler: string, paths: readonly string[]): Promise<string[]>;
}

const ARTICLE = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Rain again</title>
<style>body{font:16px/1.6 Georgia,serif;margin:3rem auto;max-width:38rem;color:#222}h1{font-size:2rem}</style></head>
<body><h1>Rain again on the coast</h1><p>It rained from Monday to Thursday, and the harbour was quiet.</p>
<p>The ferries went at their usual times. <a href="/more">More about the weather</a></p></body></html>`;

const ATTACK = `<!doctype html><html><head><title>attack</title>
<script>top.document.title='attacked';fetch('/stolen')</script>
<meta http-equiv="refresh" content="0;url=/stolen-refresh"><link rel="stylesheet" href="/stolen.css">
<LINK/rel="preconnect" href="https://stolen.example/"><link	rel="dns-prefetch" href="//stolen.example">
<style>@import '/stolen-import.css';body{background:url(/stolen-style.png)}</style></head>
<body onload="top.location='/stolen'"><p>Harmless</p><img src="/stolen.png" onerror="top.document.title='attacked'">
<img src="//stolen.example/pixel.png"><iframe src="/stolen-frame"></iframe>
<iframe srcdoc="&lt;link rel='preconnect' href='//stolen.example'&gt;"></iframe><iframe title="b"SrcDoc
 = "&lt;meta http-equiv='refresh' content='0;url=/stolen-refresh'&gt;"></iframe><object data="/stolen-object"></object>
<a href="/stolen-link" target="_top">leave</a><form action="/stolen-form" target="_top"><button>send</button></form>
</body></html>`;

/**
 * Starts it. `news` stores pages, `shop` delivers to a webhook, and `flights` is at work. `forum`
 * was paused by its user, `partner` by the monitoring, as its callback URL fails. `weather` has
 * URLs that fail.
 */
export async function startConsoleScene(): Promise<ConsoleScene> {
  await using stack = new AsyncDisposableStack();
  const site = stack.use(
    await startSite({
      routes: {
        '/article': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(ARTICLE);
        },
        '/attack': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(ATTACK);
        },
        '/deep.json': (_request, response) => {
          const deep = `${'['.repeat(50_000)}"deepest"${']'.repeat(50_000)}`;
          const type = { 'content-type': 'application/json' };
          response.writeHead(200, type).end(`{"deep":${deep},"first":1}`);
        },
        '/data.json': (_request, response) => {
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(
              '{"name":"Lamp","price":{"amount":49.9,"currency":"EUR"},"tags":["light","home"]}',
            );
        },
      },
    }),
  );
  const receiver = stack.use(await startReceiver());
  const failing = stack.use(await startReceiver());
  failing.answerProbes({ status: 500 });
  const folder = stack.use(await temporaryFolder());
  const uri = await mongodbUri(stack);
  const app = stack.use(
    await startProcess({
      DATA_DIR: folder.path,
      ...(uri === undefined ? {} : { MONGODB_URI: uri }),
      ACCOUNT_EMAIL: 'crawls@example.com',
      PROBE_INTERVAL_SECONDS: '1',
    }),
  );
  const push = async (crawler: string, paths: readonly string[]): Promise<string[]> => {
    const items = paths.map((path) => ({ url: site.url + path }));
    const reply = await app.rest('POST', `/crawler/${NORMAL}/${crawler}/push_batch`, { items });
    return (reply.json.results as { rid: string }[]).map(({ rid }) => rid);
  };
  const make = (name: string, more: object = {}) =>
    app.rest('POST', `/crawler/${NORMAL}`, { name, ...more });
  const pages = (from: number, count: number, query = ''): string[] =>
    Array.from({ length: count }, (_, at) => `/page/${from + at}${query}`);

  await make('news', { concurrency: 10 });
  await make('shop', { callback_url: receiver.url, concurrency: 10 });
  await make('flights', { concurrency: 4 });
  await make('forum');
  await make('weather', { max_retries: 5, politeness: { max_per_host: 2, robots_txt: true } });
  await make('partner', { callback_url: failing.url });
  await app.rest('POST', `/crawler/${NORMAL}/forum/pause`);
  await push('forum', pages(900, 12));
  await push('weather', ['/status/503', '/status/500', '/empty']);
  await push('shop', pages(0, 8));
  await push('news', ['/article', '/data.json', '/status/404', ...pages(20, 8)]);
  const dead = { items: [{ url: 'http://169.254.1.1/admin' }, { url: 'ftp://files.example/x' }] };
  await app.rest('POST', `/crawler/${NORMAL}/news/push_batch`, dead);
  await push('flights', pages(0, 120, '?delay=1500'));
  await eventually(
    async () => {
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/news`);
      if (Number(json.activity.completed) < 11) throw new Error('news is being crawled');
    },
    { what: 'the results of news' },
  );
  await receiver.until(8);
  await eventually(
    async () => {
      const { json } = await app.rest('GET', `/crawler/${NORMAL}/partner`);
      if (json.paused_by !== 'monitor') throw new Error('partner runs');
    },
    { what: 'the pause of partner' },
  );
  const open = stack.move();
  return { app, site, receiver, push, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

/** A database of its own where the tests run on MongoDB. */
async function mongodbUri(stack: AsyncDisposableStack): Promise<string | undefined> {
  if (process.env.TEST_STORE !== 'mongodb') return undefined;
  // Outside of tests there is no server to ask for.
  const { testDatabase } = await import('./mongodb.ts');
  return stack.use(testDatabase()).uri;
}
