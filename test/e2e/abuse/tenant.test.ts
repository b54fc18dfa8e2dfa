import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ADMIN, NORMAL } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { isLong } from '../../support/length.ts';
import { rssOf, type ServiceProcess, startProcess } from '../../support/service-process.ts';
import { type Site, startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

// What one tenant can do to the others, within what he may do. The service runs in a process of its own; account `default` attacks, and
// the victim is a second account.

const MIB = 1024 * 1024;
const LARGE_BYTES = 8 * MIB;
/** Far above what a busy machine needs for one page, far below what the attacks would cost without fairness. */
const BEARABLE_MS = 30_000;

let stack: AsyncDisposableStack;
let site: Site;
let service: ServiceProcess;
let victim: string;
/** Called when the victim's own page is crawled. */
let crawlingMine: () => void;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  // It does not compress.
  const large = randomBytes(LARGE_BYTES);
  site = stack.use(
    await startSite({
      routes: {
        '/large': (_request, response) => {
          response.writeHead(200, { 'content-type': 'image/png' }).end(large);
        },
        '/mine': (_request, response) => {
          crawlingMine();
          response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Mine</h1>');
        },
        '/deep': (_request, response) => {
          const items = '<ul><li>a'.repeat(1_000);
          response.writeHead(200, { 'content-type': 'text/html' }).end(items);
        },
      },
    }),
  );
});

afterEach(() => stack.disposeAsync());

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  const folder = stack.use(await temporaryFolder());
  service = stack.use(await startProcess({ DATA_DIR: folder.path, CRAWL_THREADS: '1', ...env }));
  const made = await callAsAdmin('POST', '/accounts', { name: 'victim', email: 'v@example.com' });
  victim = made.normal_token;
}

// oxlint-disable-next-line typescript/no-explicit-any -- replies of several shapes
async function callAsAdmin(method: string, path: string, body: unknown): Promise<any> {
  const response = await fetch(service.url + path, {
    method,
    headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return response.json();
}

/** Makes a crawler and pushes one URL as often as told. */
async function crawl(
  token: string,
  name: string,
  path: string,
  { count = 1, ...settings }: { count?: number; concurrency?: number } = {},
): Promise<void> {
  const made = await service.rest('POST', `/crawler/${token}`, { name, ...settings });
  expect(made.status, made.text).toBe(200);
  const items = Array.from({ length: count }, (_, n) => ({ url: `${site.url}${path}?${n}` }));
  const pushed = await service.rest('POST', `/crawler/${token}/${name}/push_batch`, { items });
  expect(pushed.status, pushed.text).toBe(200);
}

async function completed(token: string, name: string): Promise<number> {
  const { json } = await service.rest('GET', `/crawler/${token}/${name}`);
  return json.activity.completed;
}

/** The victim's own page, from push to storage, during the attack. */
async function victimCrawls(name = 'mine'): Promise<void> {
  await crawl(victim, name, `/page/${name}`);
  await eventually(async () => expect(await completed(victim, name)).toBe(1), {
    timeoutMs: BEARABLE_MS,
  });
}

test('more crawlers than are dispatched at once, each with a page that never ends, delay nobody else', async () => {
  await start();
  const crawlers = 520;
  for (let from = 0; from < crawlers; from += 40) {
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        crawl(NORMAL, `trap-${from + n}`, '/hang', { concurrency: 1, count: 3 }),
      ),
    );
  }
  await eventually(() => expect(site.concurrent).toBeGreaterThanOrEqual(500));
  await victimCrawls();
  // The attack still runs, and the victim's other work, too.
  expect(site.concurrent).toBeGreaterThanOrEqual(500);
  await victimCrawls('again');
});

test('more pages that never end than can be crawled at once leave room for others', async () => {
  await start();
  for (const name of ['one', 'two', 'three']) {
    await crawl(NORMAL, name, '/hang', { concurrency: 1_000, count: 1_000 });
  }
  await eventually(() => expect(site.concurrent).toBeGreaterThanOrEqual(2_000));
  await victimCrawls();
  expect(site.concurrent).toBeGreaterThanOrEqual(2_000);
});

test.runIf(isLong)(
  'large pages in any number stay within the memory budget, and each is crawled',
  async () => {
    const budget = 64 * MIB;
    await start({ MEMORY_BUDGET_BYTES: String(budget) });
    await victimCrawls('warm');
    const before = rssOf(service);
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, rssOf(service));
    }, 50);
    stack.defer(() => clearInterval(timer));
    const count = 40;
    await crawl(NORMAL, 'large', '/large', { concurrency: count, count });
    await victimCrawls();
    await eventually(async () => expect(await completed(NORMAL, 'large')).toBe(count));
    // All of them together are 320 MiB. In addition to the budget, one page takes memory while it
    // is packed, copied and written.
    expect(most - before).toBeLessThan(budget + 256 * MIB);
  },
);

test('documents that take all their time leave others their turn', async () => {
  await start();
  const inline = (token: string, path: string) =>
    service.rest('GET', `/?token=${token}&format=md&url=${encodeURIComponent(site.url + path)}`);
  const inFlight = 12;
  let attacking = true;
  let ended = 0;
  const attackers = Array.from({ length: inFlight }, async () => {
    while (attacking) {
      // The service is killed before they all end.
      await inline(NORMAL, '/deep').catch(() => undefined);
      ended += 1;
    }
  });
  await eventually(() => expect(site.hits('/deep')).toBeGreaterThanOrEqual(inFlight));
  let endedBefore = 0;
  crawlingMine = () => {
    endedBefore = ended;
  };
  const mine = await inline(victim, '/mine');
  expect([mine.status, mine.text]).toEqual([200, expect.stringContaining('Mine')]);
  // Since the page of the victim has been there, the attack had a turn or two, not all that it waits for.
  expect(ended - endedBefore).toBeLessThan(inFlight / 2);
  attacking = false;
  await service.kill9();
  await Promise.all(attackers);
});
