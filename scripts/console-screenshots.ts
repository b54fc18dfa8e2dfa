import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ConsoleView, openConsoleBrowser } from '../test/support/console-browser.ts';
import { startConsoleScene } from '../test/support/console-scene.ts';
import { startSite } from '../test/support/site.ts';
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
  { name: 'hosts', path: '/crawlers/catalogues/hosts', token: NORMAL },
  { name: 'new-crawler', path: '/crawlers/+new', token: NORMAL },
  { name: 'setup', path: '/setup', token: ADMIN },
  { name: 'phone', path: '/crawlers/flights', token: NORMAL, width: 375, height: 780 },
];
/** Pages with charts and rates, which show something after this time. */
const PATIENT = new Set(['/crawlers/flights', '/crawlers/catalogues/hosts']);
const CHART_MS = 20_000;

const folder = join(import.meta.dirname, '..', 'docs', 'console');
const wanted = process.argv.slice(2);

await mkdir(folder, { recursive: true });
await using scene = await startConsoleScene();
await using sites = new AsyncDisposableStack();
// Work for all the time that the pictures take.
await scene.push(
  'flights',
  Array.from({ length: 900 }, (_, at) => `/page/${at}?delay=${400 + ((at * 7919) % 600)}`),
);
await pushToManyHosts('catalogues');
await using browser = await openConsoleBrowser(scene.app.url);
for (const picture of PICTURES) {
  if (wanted.length > 0 && !wanted.includes(picture.name)) continue;
  const size = { width: 1_280, height: 800, ...picture };
  const page = await browser.open(picture.path, picture.token, size);
  await page.waitForTimeout(PATIENT.has(picture.path) ? CHART_MS : 1_500);
  await page.getByText('Loading…').first().waitFor({ state: 'detached' });
  if (picture.open !== undefined) {
    await page.getByRole('button', { name: picture.open }).first().click();
    await page.waitForTimeout(1_000);
  }
  await page.screenshot({ path: join(folder, `${picture.name}.png`) });
  await page.context().close();
  console.log(`docs/console/${picture.name}.png`);
}
for (const problem of browser.problems) console.log(problem);

/** Makes a crawler whose hosts answer, are slow, are not reached or are paused. */
async function pushToManyHosts(name: string): Promise<void> {
  const { rest } = scene.app;
  await rest('POST', `/crawler/${NORMAL}`, { name, concurrency: 4 });
  await rest('POST', `/crawler/${NORMAL}/${name}/hosts/pause?host=paused.example`);
  const quick = sites.use(await startSite());
  const slow = sites.use(await startSite());
  const hosts = ['http://paused.example', 'http://127.0.0.1:59998', quick.url, slow.url];
  const items = hosts.flatMap((host, at) =>
    Array.from({ length: 40 + 35 * at }, (_, n) => {
      return { url: `${host}${at === 3 ? `/delay/${300 + n}` : `/page/${n}`}` };
    }),
  );
  await rest('POST', `/crawler/${NORMAL}/${name}/push_batch`, { items });
}
