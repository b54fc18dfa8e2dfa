import { readdir, readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { NORMAL, type TestApp } from '../../support/app.ts';
import { type CommandLineEnd, runCommandLine } from '../../support/command-line.ts';
import { createCrawler } from '../../support/crawler-client.ts';
import { shareApp } from '../../support/shared-app.ts';
import { startSite } from '../../support/site.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const shared = shareApp();

function run(app: TestApp, ...args: string[]): Promise<CommandLineEnd> {
  const env = { HOME: '/nonexistent', QUEUED_CRAWLER_URL: app.url, QUEUED_CRAWLER_TOKEN: NORMAL };
  return runCommandLine(args, { env });
}

test('a folder takes one batch of a crawler after the other, and continues each', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  const rids: string[] = [];
  for (const batch of ['tuesday', 'monday']) {
    rids.push(await shop.push(`${site.url}/page/${batch}`, `&batch=${batch}`));
    await shop.stored(rids.at(-1) ?? '');
  }
  const results = ['results', '--crawler', 'shop', '--to', folder.path];
  expect((await run(app, ...results, '--batch', 'monday')).stderr).toBe('1 results\n');
  expect((await run(app, ...results, '--batch', 'tuesday')).stderr).toBe('1 results\n');
  expect((await run(app, ...results, '--batch', 'tuesday')).stderr).toBe('0 results\n');
  const pages = (await readdir(folder.path)).filter((name) => name.endsWith('.html'));
  expect(pages.sort()).toEqual(rids.map((rid) => `${rid}.html`).sort());
});

test('export refuses a file that has less than its place says, and leaves it as it is', async () => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  const app = shared();
  const shop = await createCrawler(app, 'shop');
  await shop.stored(await shop.push(`${site.url}/page/1`));
  const file = join(folder.path, 'results.ndjson');
  const again = () => run(app, 'export', 'shop', '--to', file);
  expect((await again()).stderr).toBe('1 results\n');
  const written = await readFile(file, 'utf8');

  const refused = {
    code: 2,
    stderr: `queued-crawler: ${file} has less than ${file}.place says; remove both to begin anew\n`,
  };
  await truncate(file, 3);
  expect(await again()).toMatchObject(refused);
  expect(await readFile(file, 'utf8')).toBe(written.slice(0, 3));
  await rm(file);
  expect(await again()).toMatchObject(refused);
  await rm(`${file}.place`);
  expect((await again()).stderr).toBe('1 results\n');
  expect(await readFile(file, 'utf8')).toBe(written);
});
