import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ADMIN, NORMAL, startApp } from '../support/app.ts';
import { runCommandLine } from '../support/command-line.ts';
import { openConsoleBrowser } from '../support/console-browser.ts';
import { faultsInBothThemes, NO_FAULTS } from '../support/console-pages.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';

test('the account page lists who changed what, filters it and exports it; so does the command line', async () => {
  await using app = await startApp();
  const shop = await createCrawler(app, 'shop');
  await app.rest('PUT', shop.path, { concurrency: 7 });
  await createCrawler(app, 'news');
  const admin = { authorization: `Bearer ${ADMIN}` };
  await app.rest('PUT', '/accounts/default', { email: '=a@example.com' }, admin);

  await using browser = await openConsoleBrowser(app.url);
  const page = await browser.open('/account', NORMAL);
  const table = page.getByRole('table', { name: 'Changes' });
  const rows = table.getByRole('row');
  const texts = async () => (await rows.allInnerTexts()).slice(1);
  await eventually(async () => expect(await texts()).toHaveLength(4));
  expect((await texts())[0]).toMatch(/Operator[\s\S]*UpdateAccount/);
  expect((await texts())[2]).toMatch(
    /Normal token[\s\S]*UpdateCrawler[\s\S]*shop[\s\S]*concurrency/,
  );

  // The filters are next to each other, and so are the buttons.
  for (const controls of [
    ['Changes of crawler', 'What was changed', 'Changes from', 'Changes before'].map((label) =>
      page.getByLabel(label, { exact: true }),
    ),
    ['CSV', 'NDJSON'].map((name) => page.getByRole('button', { name, exact: true })),
  ]) {
    const boxes = await Promise.all(controls.map((each) => each.boundingBox()));
    expect(new Set(boxes.map((box) => box?.y)).size).toBe(1);
    for (const [at, box] of boxes.slice(1).entries()) {
      const before = boxes[at];
      expect((box?.x ?? 0) - (before?.x ?? 0) - (before?.width ?? 0)).toBeLessThan(40);
    }
  }

  await page.getByLabel('Changes of crawler').fill('shop');
  await eventually(async () => expect(await texts()).toHaveLength(2));
  expect(page.url()).toContain('crawler=shop');
  const ndjson = await exported(page, 'NDJSON');
  expect(
    ndjson
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { by: 'normal', method: 'UpdateCrawler', crawler: 'shop', changes: '{"concurrency":7}' },
    { by: 'normal', method: 'CreateCrawler', crawler: 'shop' },
  ]);
  await page.getByLabel('Changes of crawler').fill('');
  await page.getByRole('button', { name: 'Operator' }).click();
  await eventually(async () => expect(await texts()).toHaveLength(1));
  const [heading, line] = (await exported(page, 'CSV')).split('\r\n');
  expect(heading).toBe('at,by,method,crawler,remote,request_id,changes');
  expect(line).toMatch(
    /^20[^,]*Z,operator,UpdateAccount,,[^,]*127[^,]*,[^,]+,"\{""email"":""=a@example.com""\}"$/,
  );
  await page.getByRole('button', { name: 'Anybody' }).click();

  // By what was changed and when, and the address has it.
  await page.getByLabel('What was changed').selectOption('UpdateCrawler');
  await eventually(async () => {
    expect(await texts()).toHaveLength(1);
    expect((await texts())[0]).toContain('UpdateCrawler');
  });
  await page.getByLabel('Changes from').fill('2001-01-01T00:00');
  await page.getByLabel('Changes before').fill('2002-01-01T00:00');
  await page.getByText('No changes like that').waitFor();
  await page.reload();
  await page.getByText('No changes like that').waitFor();
  await page.getByLabel('Changes before').fill('');
  await eventually(async () => expect(await texts()).toHaveLength(1));
  expect(await faultsInBothThemes(page)).toEqual(NO_FAULTS);
  expect(browser.problems).toEqual([]);

  const env = { QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  const listed = await runCommandLine(['--json', 'audit', '--crawler', 'shop'], { env });
  expect(listed.json).toMatchObject([{ method: 'UpdateCrawler' }, { method: 'CreateCrawler' }]);
  const csv = await runCommandLine(['audit', '--csv', '--method', 'UpdateAccount'], { env });
  const [titles, first] = csv.stdout.split(/\r?\n/);
  expect(titles).toBe('at,by,method,crawler,remote,request_id,changes');
  expect(first).toMatch(/^20[^,]*Z,operator,UpdateAccount,,[^,]*,[^,]+,"\{""email""/);
  const none = await runCommandLine(['audit', '--since', '2100-01-01'], { env });
  expect([none.code, none.stderr]).toEqual([0, expect.stringContaining('nothing was changed')]);
  expect((await runCommandLine(['audit', '--since', 'soon'], { env })).code).toBe(2);
});

async function exported(page: Page, format: 'CSV' | 'NDJSON'): Promise<string> {
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: format, exact: true }).click();
  return readFile(await (await saved).path(), 'utf8');
}
