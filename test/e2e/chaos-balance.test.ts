import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { type BalanceParts, expectDrained, findImbalances } from '../support/chaos/balance.ts';
import type { ChaosCrawler } from '../support/chaos/chaos-crawlers.ts';
import { type ChaosLoad, startLoad } from '../support/chaos/chaos-load.ts';
import { openChaosReceiver } from '../support/chaos/chaos-receiver.ts';
import { openChaosSite } from '../support/chaos/chaos-site.ts';
import { eventually } from '../support/eventually.ts';

const store: ChaosCrawler = {
  name: 'store',
  delivery: 'storage',
  concurrency: 4,
  pageMs: 30,
  removals: false,
};
const hook: ChaosCrawler = {
  name: 'hook',
  delivery: 'webhook',
  concurrency: 4,
  pageMs: 30,
  removals: false,
};

test('the balance of the chaos test finds what is lost, too much, or above a limit', async () => {
  await using site = await openChaosSite();
  await using receiver = await openChaosReceiver();
  await using app = await startApp({ env: { WEBHOOK_RETRY_SCHEDULE: '1s,1s,1s' } });
  const crawlers = [store, hook];
  for (const { name, delivery, concurrency } of crawlers) {
    const callback = delivery === 'webhook' ? { callback_url: receiver.url } : {};
    await app.rest('POST', `/crawler/${NORMAL}`, { name, concurrency, ...callback });
  }
  const loads = new Map<ChaosCrawler, ChaosLoad>();
  for (const crawler of crawlers) {
    loads.set(crawler, startLoad({ running: () => [app] }, site, crawler));
  }
  await eventually(() => {
    for (const { name } of crawlers) expect(site.seen(name).requests.size).toBeGreaterThan(30);
  });
  await Promise.all([...loads.values()].map((load) => load.stop()));
  await eventually(() => expectDrained(app));
  for (const load of loads.values()) {
    await load.pushRestAgain();
    expect(load.again.size).toBeGreaterThan(0);
  }
  await eventually(() => expectDrained(app));

  const parts: BalanceParts = { services: [app, app], loads, site, receiver };
  expect(await findImbalances(parts)).toEqual([]);

  /** The balance when one of the crawlers' loads had been another. */
  function withLoad(
    crawler: ChaosCrawler,
    change: Partial<ChaosCrawler>,
    rids = new Map<number, string>(),
  ) {
    const changed = new Map(loads);
    const load = loads.get(crawler) as ChaosLoad;
    changed.delete(crawler);
    changed.set({ ...crawler, ...change }, { ...load, rids: new Map([...load.rids, ...rids]) });
    return findImbalances({ ...parts, loads: changed });
  }
  expect(await withLoad(store, { concurrency: 3 })).toEqual([
    'store: 4 crawls at once, the limit is 3',
  ]);
  expect(await withLoad(store, { politeness: { maxPerHost: 3, delayMs: 60_000 } })).toEqual([
    expect.stringMatching(/^store: 4 requests at once at 127.0.0.1:\d+$/),
    expect.stringMatching(/^store: requests at 127.0.0.1:\d+ after \d+, /),
  ]);
  expect(await withLoad(store, {}, new Map([[-1, 'f'.repeat(24)]]))).toEqual([
    expect.stringMatching(/^store: \d+ pushed by its counters, \d+ acknowledged$/),
    expect.stringMatching(/^store: of \d+ acknowledged \d+ arrived, .* purged, not f{24}$/),
    expect.stringMatching(/^store: load has \d+ accepted, \d+ ended, of \d+$/),
  ]);
  const early = new Map([[1, performance.now() + 2_000]]);
  const known = loads.get(store) as ChaosLoad;
  const late = new Map(loads).set(store, { ...known, notBefore: early });
  expect(await findImbalances({ ...parts, loads: late })).toEqual([
    expect.stringMatching(/^store: page 1 was crawled \d+ ms early$/),
  ]);
  const [first = '', second = ''] = known.rids.values();
  const swapped = new Map(known.rids).set(0, second).set(1, first);
  const mixed = new Map(loads).set(store, { ...known, rids: swapped });
  expect(await findImbalances({ ...parts, loads: mixed })).toEqual([
    expect.stringMatching(
      /^store: [0-9a-f]{24} came back with metadata \{"n":1\} .+, not metadata \{"n":0\} /,
    ),
    expect.stringMatching(
      /^store: [0-9a-f]{24} came back with metadata \{"n":0\} .+, not metadata \{"n":1\} /,
    ),
  ]);
  expect(await withLoad(hook, {}, new Map([[0, first]]))).toContainEqual(
    expect.stringMatching(/^hook: of \d+ acknowledged/),
  );
  await app.rest('DELETE', `/storage?token=${NORMAL}&rid=${first}`);
  expect(await findImbalances(parts)).toContainEqual(
    expect.stringMatching(/^store: \d+ completed by its counters, \d+ arrived$/),
  );
});
