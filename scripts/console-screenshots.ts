import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConsoleView, openConsoleBrowser } from '../test/support/console-browser.ts';
import { startConsoleScene } from '../test/support/console-scene.ts';
import { ADMIN, NORMAL } from '../test/support/tokens.ts';

interface Picture extends ConsoleView {
  readonly name: string;
  readonly path: string;
  readonly token: string;
  /** A button that is pressed before, by a part of its name. */
  readonly open?: string;
}

/** The pictures in docs/console: what they show, who sees it and how. */
const PICTURES: readonly Picture[] = [
  { name: 'crawlers', path: '/crawlers', token: NORMAL },
  { name: 'crawlers-dark', path: '/crawlers', token: NORMAL, theme: 'dark' },
  { name: 'crawler', path: '/crawlers/slow', token: NORMAL },
  { name: 'crawler-dark', path: '/crawlers/slow', token: NORMAL, theme: 'dark' },
  { name: 'queue', path: '/crawlers/paused/jobs', token: NORMAL },
  { name: 'results', path: '/crawlers/news/results', token: NORMAL },
  { name: 'result', path: '/crawlers/news/results', token: NORMAL, open: 'article' },
  { name: 'deliveries', path: '/crawlers/shop/deliveries', token: NORMAL },
  { name: 'failures', path: '/crawlers/news/failures', token: NORMAL },
  { name: 'push', path: '/crawlers/news/push', token: NORMAL },
  { name: 'settings', path: '/crawlers/shop/settings', token: NORMAL },
  { name: 'new-crawler', path: '/crawlers/+new', token: NORMAL },
  { name: 'crawl', path: '/crawl', token: NORMAL },
  { name: 'account', path: '/account', token: NORMAL },
  { name: 'accounts', path: '/accounts', token: ADMIN },
  { name: 'sign-in', path: '', token: '' },
  { name: 'phone-crawlers', path: '/crawlers', token: NORMAL, width: 375, height: 780 },
  {
    name: 'phone-crawler',
    path: '/crawlers/slow',
    token: NORMAL,
    width: 375,
    height: 780,
    theme: 'dark',
  },
];

const folder = join(import.meta.dirname, '..', 'docs', 'console');
const wanted = process.argv.slice(2);

await mkdir(folder, { recursive: true });
await using scene = await startConsoleScene();
await using browser = await openConsoleBrowser(scene.app.url);
for (const picture of PICTURES) {
  if (wanted.length > 0 && !wanted.includes(picture.name)) continue;
  const page = await browser.open(picture.path, picture.token, picture);
  // Charts need a few seconds of what they show.
  await page.waitForTimeout(picture.path === '/crawlers/slow' ? 8_000 : 1_500);
  if (picture.open !== undefined) {
    await page.getByRole('button', { name: picture.open }).first().click();
    await page.waitForTimeout(1_000);
  }
  await page.screenshot({ path: join(folder, `${picture.name}.png`) });
  await page.context().close();
  console.log(`docs/console/${picture.name}.png`);
}
for (const problem of browser.problems) console.log(problem);
