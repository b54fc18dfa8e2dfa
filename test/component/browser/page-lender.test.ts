import { afterAll, expect, test } from 'vitest';
import { createBrowserPool } from '../../../src/engine/browser/browser-pool.ts';
import { createBrowserTurns } from '../../../src/engine/browser/browser-turns.ts';
import { createPageLender, type PageLender } from '../../../src/engine/browser/page-lender.ts';
import { createAddressGuard } from '../../../src/net/address-guard.ts';
import { startFilteringProxy } from '../../../src/net/filtering-proxy.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { createResolver } from '../../../src/net/resolver.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

const pool = createBrowserPool({
  chromiumPath: '',
  sandbox: 'off',
  turns: createBrowserTurns(4),
  logger: silentLogger,
});
afterAll(() => pool.close());

const ORIGIN = 'http://127.0.0.1:9';

/** Uses a page of that kind for one crawl; whether another crawl has used it before. */
async function use(lender: PageLender, kind: string | undefined, canKeep = true) {
  const loan = await lender.lend(kind, ORIGIN, () =>
    startFilteringProxy({
      guard: createAddressGuard(parseNetworkAllow('')),
      lookup: createResolver(),
      maxBytes: 1_000,
      maxSentBytes: 1_000,
      maxAnswerBytes: 1_000,
    }),
  );
  const page = await loan.page;
  await Promise.all([
    page.send('Page.enable'),
    page.send('Page.setLifecycleEventsEnabled', { enabled: true }),
  ]);
  await loan.giveBack(canKeep);
  return loan.isUsed;
}

/** Number of pages that the browser has in addition to the one that asks. */
async function openPages(): Promise<number> {
  const page = await pool.open({ proxyServer: ORIGIN });
  const { browserContextIds } = await page.sendToBrowser('Target.getBrowserContexts', undefined);
  await page.close();
  return browserContextIds.length - 1;
}

test('a page is kept from the second crawl of its kind on, and for its kind alone', async () => {
  const lender = createPageLender({ pool, maxPages: 4 });
  expect(await use(lender, 'a')).toBe(false);
  expect(await openPages()).toBe(0);
  expect([await use(lender, 'a'), await use(lender, 'a')]).toEqual([false, true]);
  expect([await use(lender, 'b'), await use(lender, 'b')]).toEqual([false, false]);
  expect([await use(lender, undefined), await use(lender, undefined)]).toEqual([false, false]);
  expect(await openPages()).toBe(2);
  // A crawl that did not end well leaves no page.
  expect([await use(lender, 'a', false), await use(lender, 'a')]).toEqual([true, false]);
  await lender.close();
  expect(await openPages()).toBe(0);
});

test('pages that nobody uses are no more than there may be, and are closed when used up', async () => {
  const lender = createPageLender({ pool, maxPages: 2, idleMs: 60_000, maxUses: 2 });
  for (const kind of ['a', 'b', 'c']) {
    await use(lender, kind);
    await use(lender, kind);
  }
  expect(await openPages()).toBe(2);
  expect([await use(lender, 'c'), await use(lender, 'c')]).toEqual([true, false]);
  await lender.close();
  await eventually(async () => expect(await openPages()).toBe(0));
});

test('pages that nobody uses are closed when they have been idle', async () => {
  const lender = createPageLender({ pool, maxPages: 2, idleMs: 100, maxUses: 3 });
  await use(lender, 'a');
  await use(lender, 'a');
  await eventually(async () => expect(await openPages()).toBe(0));
  await lender.close();
});
