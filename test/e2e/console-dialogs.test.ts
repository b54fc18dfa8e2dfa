import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConsoleBrowser, openConsoleBrowser } from '../support/console-browser.ts';
import {
  type DialogTour,
  dialogTitles,
  expectAccessibleDialog,
  lookAtDialogs,
} from '../support/console-dialogs.ts';
import { deliveredRid, goWithin, samplesOf, untilRead } from '../support/console-pages.ts';
import { type ConsoleScene, startConsoleScene } from '../support/console-scene.ts';
import { ADMIN, NORMAL } from '../support/tokens.ts';

let scene: ConsoleScene;
let browser: ConsoleBrowser;

beforeAll(async () => {
  scene = await startConsoleScene();
  browser = await openConsoleBrowser(scene.app.url);
});

afterAll(async () => {
  // The browser itself notes that a token is not the operator's, or no account's, and unknown jobs.
  browser?.problems.forEach((each) => expect(each).toMatch(/40[14]/));
  await browser?.[Symbol.asyncDispose]();
  await scene?.[Symbol.asyncDispose]();
});

test('axe-core finds nothing in any dialog that the sources name, in both themes', async () => {
  const { app, site } = scene;
  const pool = { name: 'own', proxies: ['http://8.8.8.8:3128'] };
  const made = await app.rest('POST', `/proxies/${NORMAL}`, pool);
  expect(made.status, made.text).toBe(200);
  await app.rest('GET', `/?token=${NORMAL}&async=true&url=${site.url}/status/503`);
  const items = [{ url: `${site.url}/page/1`, batch: 'evening' }];
  await app.rest('POST', `/crawler/${NORMAL}/forum/push_batch`, { items });
  const { json } = await app.rest('GET', `/crawler/${NORMAL}/forum/jobs`);
  const [queued] = json.jobs as { rid: string }[];
  const rid = await deliveredRid(app);
  const further = ['/crawlers/forum/batches', '/crawlers/forum/hosts', `/jobs/${queued?.rid}`];
  const tour: DialogTour = { titles: new Set(), buttons: new Set() };

  for (const token of [NORMAL, ADMIN]) {
    const page = await browser.open('', token);
    const own = samplesOf(rid).flatMap(([path, by]) => (by === token ? [path] : []));
    for (const path of [...own, ...(token === NORMAL ? further : [])]) {
      await goWithin(page, path);
      await untilRead(page);
      await lookAtDialogs(page, tour);
    }
    await page.context().close();
  }

  // What asks only after something was chosen, read or made.
  const user = await browser.open('/storage', NORMAL);
  await user.getByRole('table', { name: 'Asynchronous crawls' }).waitFor();
  await lookAtDialogs(user, tour);
  await goWithin(user, '/crawlers');
  await user.getByRole('button', { name: /^Choose all/ }).click();
  await lookAtDialogs(user, tour);
  await goWithin(user, '/crawlers/+new');
  await user.getByLabel('Callback URL').fill(scene.receiver.url);
  await user.getByRole('button', { name: 'Create crawler' }).click();
  await expectAccessibleDialog(user, tour);
  await user.getByRole('button', { name: 'I have saved it' }).click();
  await goWithin(user, '/crawlers/shop/settings');
  await user.getByRole('button', { name: 'New secret' }).click();
  await expectAccessibleDialog(user, tour);
  await user.getByRole('button', { name: 'Replace' }).click();
  await user.getByText('whsec_').waitFor();
  await expectAccessibleDialog(user, tour);
  await user.context().close();

  const operator = await browser.open('/accounts', ADMIN);
  await operator.getByRole('button', { name: 'New account' }).click();
  await operator.getByLabel('Name').fill('client');
  await operator.getByRole('button', { name: 'Make account' }).click();
  await operator.getByText('Hand these over now').waitFor();
  await expectAccessibleDialog(operator, tour);
  await operator.getByRole('button', { name: 'I have saved them' }).click();
  await operator.getByRole('button', { name: 'New token for client' }).click();
  await operator.getByLabel('Type client to confirm').fill('client');
  await operator.getByRole('button', { name: 'Replace' }).click();
  await operator.getByText('Hand it over now').waitFor();
  await expectAccessibleDialog(operator, tour);
  await operator.context().close();

  const seen = [...tour.titles];
  const unseen = dialogTitles().filter((title) => !seen.some((each) => title.test(each)));
  expect({ unseen, seen }).toEqual({ unseen: [], seen });
  expect(seen).toContain('Commands');
  expect(seen).toContain('Keyboard');
});
