import { expect, test } from 'vitest';
import { type CrawlerClient, createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { byLength } from '../support/length.ts';
import { testDatabase } from '../support/mongodb.ts';
import { startReceiver } from '../support/receiver.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { createSetClock } from '../support/set-clock.ts';
import { type Site, startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The first retry of a crawl waits for 3.75 to 5 seconds, counted from its end. */
const LEAST_RETRY_MS = 3_700;
/** Nine tenths of the wait in `WEBHOOK_RETRY_SCHEDULE`. */
const LEAST_REDELIVERY_MS = 3_600;

/** A machine whose clock a test sets, with data that survive the service. */
async function openMachine() {
  const folder = await temporaryFolder();
  const database = process.env.TEST_STORE === 'mongodb' ? testDatabase() : undefined;
  const clock = createSetClock(folder.path);
  const env = {
    ...clock.env,
    DATA_DIR: `${folder.path}/data`,
    WEBHOOK_RETRY_SCHEDULE: '4s',
    ...(database === undefined ? {} : { MONGODB_URI: database.uri }),
  };
  return {
    setClock: clock.set,
    /** What it shows when a moment is kept there now. On MongoDB that is the server's, which is right. */
    shown: (byMs: number): number => Date.now() + (database === undefined ? byMs : 0),
    start: (): Promise<ServiceProcess> => startProcess(env),
    async [Symbol.asyncDispose]() {
      await database?.[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The milliseconds between the first two requests for a path, undefined before the second. */
function waited(site: Site, path: string): number | undefined {
  const [first, second] = site.seen.filter((each) => each.path.startsWith(path));
  return first && second && second.at.getTime() - first.at.getTime();
}

/** Pushes a URL whose first try fails, and waits for that. */
async function pushFailing(crawler: CrawlerClient, url: string): Promise<string> {
  const rid = await crawler.push(url);
  await eventually(async () => expect((await crawler.find(rid)).json.request_info.retry).toBe(1));
  return rid;
}

async function onlyJob(service: ServiceProcess, { path }: CrawlerClient) {
  const { json } = await service.rest('GET', `${path}/jobs`);
  expect(json.jobs).toHaveLength(1);
  return json.jobs[0] as { readonly pushed_at: string; readonly next_try_at: string };
}

/** Expects a moment that is shown to be about now; the clock is set by an hour or more. */
function expectMoment(shown: string, nowMs: number): void {
  expect(Math.abs(Date.parse(shown) - nowMs)).toBeLessThan(HOUR / 10);
}

test('crawls and waits are as long as ever while the clock is set back and forth', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver({
    answer: (_post, nth) => ({ status: nth === 1 ? 503 : 200 }),
  });
  await using machine = await openMachine();
  await using service = await machine.start();
  const posting = await createCrawler(service, 'posting', { callback_url: receiver.url });
  const failing = await createCrawler(service, 'failing');
  const busy = await createCrawler(service, 'busy', { concurrency: 2 });
  await posting.push(`${site.url}/page/1`);
  await receiver.until(1);
  const retried = await pushFailing(failing, `${site.url}/flaky/a?fails=1`);

  for (const byMs of [-HOUR, HOUR, -DAY, DAY]) {
    const early = await busy.push(`${site.url}/delay/300?early=${byMs}`);
    await machine.setClock(byMs);
    const late = await busy.push(`${site.url}/page/1?late=${byMs}`);
    await busy.stored(late);
    await busy.stored(early);
    const { last_push_at, last_crawl_at } = (await busy.details()).activity;
    expectMoment(last_push_at, machine.shown(byMs));
    expectMoment(last_crawl_at, machine.shown(byMs));
  }
  expect((await busy.details()).activity).toMatchObject({ completed: 8, waiting: 0, running: 0 });
  await failing.stored(retried);
  expect(waited(site, '/flaky/a')).toBeGreaterThan(LEAST_RETRY_MS);
  const [first, second] = await eventually(() => {
    expect(receiver.deliveries).toHaveLength(2);
    return receiver.deliveries;
  });
  const redeliveredMs = (second?.at.getTime() ?? 0) - (first?.at.getTime() ?? 0);
  expect(redeliveredMs).toBeGreaterThan(LEAST_REDELIVERY_MS);
});

/** Each start but the first waits for a retry of the one before. */
const STARTS = byLength([DAY, 0], [DAY, 0, -HOUR, HOUR, -DAY]);

test('what waits when the service ends is due in time after a start with another clock', async () => {
  await using site = await startSite();
  await using machine = await openMachine();
  let before: string | undefined;
  for (const [start, byMs] of STARTS.entries()) {
    await machine.setClock(byMs);
    await using service = await machine.start();
    const name = `start-${start}`;
    const crawler = await createCrawler(service, name);
    await crawler.stored(await crawler.push(`${site.url}/page/1?${name}`));
    if (before !== undefined) {
      const path = crawler.path.replace(name, before);
      await eventually(async () => {
        const { activity } = (await service.rest('GET', path)).json;
        expect(activity).toMatchObject({ completed: 2, retrying: 0 });
      });
      expect(waited(site, `/flaky/${before}`)).toBeGreaterThan(LEAST_RETRY_MS);
    }
    await pushFailing(crawler, `${site.url}/flaky/${name}?fails=1`);
    before = name;
    const { pushed_at, next_try_at } = await onlyJob(service, crawler);
    expectMoment(pushed_at, machine.shown(byMs));
    expectMoment(next_try_at, machine.shown(byMs));
    await service.kill9();
  }
});
