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
  { name: 'crawler', path: '/crawlers/flights', token: NORMAL },
  { name: 'crawler-dark', path: '/crawlers/flights', token: NORMAL, theme: 'dark' },
  { name: 'result', path: '/crawlers/news/results', token: NORMAL, open: 'article' },
  { name: 'deliveries', path: '/crawlers/shop/deliveries', token: NORMAL, theme: 'dark' },
  { name: 'new-crawler', path: '/crawlers/+new', token: NORMAL },
  { name: 'setup', path: '/setup', token: ADMIN },
  { name: 'phone', path: '/crawlers/flights', token: NORMAL, width: 375, height: 780 },
];
/** A chart shows something after so long. */
const CHART_MS = 20_000;

const folder = join(import.meta.dirname, '..', 'docs', 'console');
const wanted = process.argv.slice(2);

await mkdir(folder, { recursive: true });
await using scene = await startConsoleScene();
// Work for all the time that the pictures take.
await scene.push(
  'flights',
  Array.from({ length: 900 }, (_, at) => `/page/${at}?delay=${400 + ((at * 7919) % 600)}`),
);
await using browser = await openConsoleBrowser(scene.app.url);
for (const picture of PICTURES) {
  if (wanted.length > 0 && !wanted.includes(picture.name)) continue;
  const size = { width: 1_280, height: 800, ...picture };
  const page = await browser.open(picture.path, picture.token, size);
  await page.waitForTimeout(picture.path === '/crawlers/flights' ? CHART_MS : 1_500);
  if (picture.open !== undefined) {
    await page.getByRole('button', { name: picture.open }).first().click();
    await page.waitForTimeout(1_000);
  }
  await page.screenshot({ path: join(folder, `${picture.name}.png`) });
  await page.context().close();
  console.log(`docs/console/${picture.name}.png`);
}
for (const problem of browser.problems) console.log(problem);
