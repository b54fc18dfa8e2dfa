import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';

interface Hit {
  readonly kind: string;
  readonly crawler: string;
  readonly url: string;
  readonly rid: string;
}

test('a URL, a part of one, a host, a rid and a name are found in one place', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  const search = async (query: string, token = NORMAL) => {
    const reply = await app.rest('GET', `/search/${token}?query=${encodeURIComponent(query)}`);
    expect(reply.status, reply.text).toBe(200);
    const { hits = [], crawlers = [], is_partial: isPartial = false } = reply.json;
    return { hits: hits as Hit[], crawlers: crawlers as string[], isPartial };
  };
  const store = await createCrawler(app, 'shop-store');
  const hook = await createCrawler(app, 'shop-hook', { callback_url: receiver.url });
  const queue = await createCrawler(app, 'queue');
  await queue.post('pause');
  const stored = await store.push(`${site.url}/page/42?Sort=up`);
  await store.stored(stored);
  const delivered = await hook.push(`${site.url}/page/42?hook`);
  await receiver.until(1);
  const items = [
    ...Array.from({ length: 2_500 }, (_, n) => ({ url: `http://many.example/${n}` })),
    { url: 'http://rare.example:81/one' },
  ];
  for (let at = 0; at < items.length; at += 1_000) {
    await app.rest('POST', `${queue.path}/push_batch`, { items: items.slice(at, at + 1_000) });
  }

  expect((await search('SHOP')).crawlers.toSorted()).toEqual(['shop-hook', 'shop-store']);
  const part = await search('/PAGE/42');
  expect(part.hits.map(({ kind, crawler, rid }) => `${kind} ${crawler} ${rid}`).toSorted()).toEqual(
    [`delivery shop-hook ${delivered}`, `result shop-store ${stored}`],
  );
  expect((await search(stored)).hits).toMatchObject([{ kind: 'result', crawler: 'shop-store' }]);
  // A whole URL is found behind more jobs than are looked through.
  const whole = await search('http://rare.example:81/one');
  expect(whole.hits).toMatchObject([{ kind: 'job', crawler: 'queue' }]);
  const some = await search('many.example');
  expect(some.isPartial).toBe(true);
  expect(some.hits).toHaveLength(10);
  expect((await search('nowhere')).hits).toEqual([]);
  expect(await search('page', JAVASCRIPT)).toEqual({ hits: [], crawlers: [], isPartial: false });
  expect((await app.rest('GET', `/search/${NORMAL}`)).status).toBe(422);

  const env = { QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const { stdout } = await runCommandLine(['find', '/page/42'], { env });
  expect(stdout).toContain(stored);
  expect(stdout).toContain('shop-hook');
});
