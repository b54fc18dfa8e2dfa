import { describe, expect, test } from 'vitest';
import { openChaosSite } from '../support/chaos/chaos-site.ts';
import { eventually } from '../support/eventually.ts';
import { isLong } from '../support/length.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { JAVASCRIPT, NORMAL } from '../support/tokens.ts';

const CONCURRENCY = 100;
const PATH = `/crawler/${NORMAL}/wide`;

interface Crawler {
  readonly processes: readonly { readonly id: string; readonly slots: number }[];
  readonly activity: Readonly<Record<string, number>>;
}

async function crawlerAt(service: ServiceProcess): Promise<Crawler> {
  return (await service.rest('GET', PATH)).json as Crawler;
}

/**
 * Waits until this number of processes work on the crawler, each with an equal part of its slots.
 */
async function expectShared(service: ServiceProcess, processes: number): Promise<void> {
  await eventually(
    async () => {
      const slots = (await crawlerAt(service)).processes.map((each) => each.slots);
      expect(slots).toHaveLength(processes);
      expect(slots.reduce((sum, each) => sum + each, 0)).toBe(CONCURRENCY);
      expect(Math.min(...slots)).toBeGreaterThanOrEqual(Math.floor(CONCURRENCY / processes));
    },
    { what: `${processes} processes with equal shares` },
  );
}

describe.skipIf(mongodbUri === '')('a crawler with many slots', () => {
  test('spreads over the processes that there are: those that join help, those that end or die are replaced, and its limit holds', async () => {
    await using database = testDatabase();
    await using site = await openChaosSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await first.rest('POST', `/crawler/${NORMAL}`, { name: 'wide', concurrency: CONCURRENCY });
    // More than is crawled while the processes come and go; what is left is purged.
    const urls = 6_000;
    for (let from = 0; from < urls; from += 1_000) {
      const items = Array.from({ length: 1_000 }, (_, n) => {
        return { url: site.page('wide', from + n, 1_000 + ((from + n) % 2_000), 0) };
      });
      expect((await first.rest('POST', `${PATH}/push_batch`, { items })).status).toBe(200);
    }
    await expectShared(first, 1);
    await using second = await startProcess(env);
    await expectShared(first, 2);
    await using third = await startProcess(env);
    await expectShared(second, 3);
    // A helper that dies: its crawls are taken back, its slots go to the others.
    await third.kill9();
    await expectShared(second, 2);
    // The lead ends: a helper leads, and the others keep what they have.
    await first.terminate();
    await using fourth = await startProcess(env);
    await expectShared(fourth, 2);
    await fourth.rest('POST', `${PATH}/purge`);
    const { activity } = await eventually(async () => {
      const crawler = await crawlerAt(fourth);
      expect(crawler.activity).toMatchObject({ waiting: 0, running: 0, retrying: 0, failed: 0 });
      return crawler;
    });
    const { completed = 0, purged = 0 } = activity;
    expect(completed + purged).toBe(urls);
    const { most, requests, again } = site.seen('wide');
    expect(most).toBeLessThanOrEqual(CONCURRENCY);
    expect(most).toBeGreaterThan(CONCURRENCY * 0.9);
    expect(requests.size).toBeGreaterThanOrEqual(completed);
    // Those of the process that died, and at most a few that two processes began at once.
    expect(again).toBeLessThan(CONCURRENCY / 2);
  });

  test.runIf(isLong)(
    'in browsers has as many processes as it takes until each slot has a page',
    async () => {
      await using database = testDatabase();
      await using site = await openChaosSite();
      const env = { MONGODB_URI: database.uri, BROWSER_PAGES: '2' };
      await using first = await startProcess(env);
      await using _second = await startProcess(env);
      await using _third = await startProcess(env);
      await using _fourth = await startProcess(env);
      const path = `/crawler/${JAVASCRIPT}`;
      await first.rest('POST', path, { name: 'pages', concurrency: 8 });
      const items = Array.from({ length: 60 }, (_, n) => ({
        url: site.page('pages', n, 4_000, 0),
      }));
      await first.rest('POST', `${path}/pages/push_batch`, { items });
      await eventually(() => expect(site.seen('pages').inFlight).toBe(8), {
        what: 'eight pages at once',
      });
      const { json } = await first.rest('GET', `${path}/pages`);
      expect(json.processes.map(({ slots }: { slots: number }) => slots)).toEqual([2, 2, 2, 2]);
      await eventually(async () => {
        const crawler = (await first.rest('GET', `${path}/pages`)).json as Crawler;
        expect(crawler.activity).toMatchObject({ completed: 60, failed: 0 });
      });
      expect(site.seen('pages').most).toBe(8);
    },
  );

  test('that is polite is shared by hosts: no host gets more than its pace, whichever process joins, dies or ends', async () => {
    const pace = { max_per_host: 2, delay_ms: 200, robots_txt: false };
    await using database = testDatabase();
    await using stack = new AsyncDisposableStack();
    const sites = await Promise.all(Array.from({ length: 32 }, () => startSite()));
    for (const site of sites) stack.use(site);
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    const settings = { name: 'wide', concurrency: 50, politeness: pace };
    await first.rest('POST', `/crawler/${NORMAL}`, settings);
    for (let part = 0; part < 4; part += 1) {
      const items = sites.flatMap(({ url }) =>
        Array.from({ length: 25 }, (_, n) => ({ url: `${url}/delay/1500?n=${part * 25 + n}` })),
      );
      expect((await first.rest('POST', `${PATH}/push_batch`, { items })).status).toBe(200);
    }
    const shared = (service: ServiceProcess, count: number) =>
      eventually(
        async () => {
          const slots = (await crawlerAt(service)).processes.map((each) => each.slots);
          expect(slots.filter((each) => each > 0)).toHaveLength(count);
        },
        { what: `${count} processes with slots` },
      );
    const hits = () => sites.reduce((sum, site) => sum + site.hits(), 0);
    await using second = await startProcess(env);
    await shared(first, 2);
    const before = hits();
    await eventually(() => expect(hits()).toBeGreaterThan(before + 150));
    // The lead dies: the helper leads, and the third process helps.
    await first.kill9();
    await using third = await startProcess(env);
    await shared(third, 2);
    await second.terminate();
    await shared(third, 1);
    const after = hits();
    await eventually(() => expect(hits()).toBeGreaterThan(after + 100));
    await third.rest('POST', `${PATH}/purge`);
    for (const site of sites) {
      expect(site.maxConcurrent).toBeLessThanOrEqual(pace.max_per_host);
      const starts = site.seen.map(({ at }) => at.getTime());
      const tenth = starts.slice(10).map((at, index) => at - (starts[index] ?? 0));
      // Of ten delays, two for requests that were on their way for long.
      expect(Math.min(...tenth)).toBeGreaterThanOrEqual(8 * pace.delay_ms);
    }
  });

  test('that shares its pace with another one asks a host together with it no more than one may, whichever process dies', async () => {
    const pace = { max_per_host: 1, delay_ms: 200, robots_txt: false, group: 'partner' };
    await using database = testDatabase();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    await using first = await startProcess(env);
    await using second = await startProcess(env);
    for (const name of ['one', 'two']) {
      const settings = { name, concurrency: 10, politeness: pace };
      await second.rest('POST', `/crawler/${NORMAL}`, settings);
      const items = Array.from({ length: 100 }, (_, n) => ({ url: `${site.url}/page/${n}` }));
      await second.rest('POST', `/crawler/${NORMAL}/${name}/push_batch`, { items });
    }
    const moreHits = async (more: number): Promise<void> => {
      const before = site.hits();
      await eventually(() => expect(site.hits()).toBeGreaterThan(before + more));
    };
    await moreHits(20);
    await first.kill9();
    await moreHits(20);
    await using third = await startProcess(env);
    await second.kill9();
    await moreHits(20);
    const completed = await Promise.all(
      ['one', 'two'].map(async (name) => {
        const { json } = await third.rest('GET', `/crawler/${NORMAL}/${name}`);
        return json.activity.completed as number;
      }),
    );
    expect(Math.min(...completed)).toBeGreaterThan(0);
    expect(site.maxConcurrent).toBe(1);
    const starts = site.seen.map(({ at }) => at.getTime());
    const tenth = starts.slice(10).map((at, index) => at - (starts[index] ?? 0));
    expect(Math.min(...tenth)).toBeGreaterThanOrEqual(8 * pace.delay_ms);
  });
});
