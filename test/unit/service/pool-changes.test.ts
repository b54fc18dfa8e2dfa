import { expect, test, vi } from 'vitest';
import { createPoolChanges } from '../../../src/service/crawlers/pool-changes.ts';
import type { CrawlerStore } from '../../../src/store/store.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { webhookCrawler } from '../../support/webhook-fixtures.ts';

const DELAY_MS = 5;

/** Accounts with 150 crawlers each, every second of which has a proxy; what was told of them. */
function startChanges() {
  const told: string[] = [];
  const woken: string[] = [];
  const crawlersOf = (accountId: string) =>
    Array.from({ length: 150 }, (_, n) => {
      const name = `c${String(n).padStart(3, '0')}`;
      const proxy = n % 2 === 0 ? 'pool' : undefined;
      return { ...webhookCrawler(), accountId, crawlerId: `${accountId}/${name}`, name, proxy };
    });
  const crawlers: Pick<CrawlerStore, 'list' | 'update'> = {
    list: async (accountId, { limit, after = '' }) =>
      crawlersOf(accountId)
        .filter(({ name }) => name > after)
        .slice(0, limit),
    async update(crawlerId) {
      told.push(crawlerId);
      if (crawlerId.endsWith('c002')) throw new Error('the database does not answer');
      return crawlerId.endsWith('c004') ? undefined : webhookCrawler();
    },
  };
  const changed = createPoolChanges({
    crawlers,
    dispatcher: { refresh: vi.fn() },
    scheduler: { wake: async (_name, crawlerId) => void woken.push(crawlerId) },
    clock: createTestClock(),
    logger: silentLogger,
    delayMs: DELAY_MS,
  });
  return { changed, told, woken };
}

test('crawlers with proxies are told of a change, whatever fails or is gone', async () => {
  const { changed, told, woken } = startChanges();
  changed('a');
  changed('b');
  expect(told).toEqual([]);
  await eventually(() => expect(told).toHaveLength(150));
  expect(new Set(told).size).toBe(150);
  await eventually(() => expect(woken).toHaveLength(146));
});

test('however often pools change, crawlers are told once for the first and once for the others', async () => {
  const { changed, told } = startChanges();
  for (let n = 0; n < 50; n += 1) changed('a');
  await eventually(() => expect(told).toHaveLength(150));
  changed('b');
  await eventually(() => expect(told).toHaveLength(225));
  expect(told.filter((id) => id === 'a/c000')).toHaveLength(2);
});
