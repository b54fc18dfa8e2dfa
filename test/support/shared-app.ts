import { afterAll, afterEach, beforeAll } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp, type TestApp, type TestAppOptions } from './app.ts';

/**
 * Starts one app for the tests of a file, or of the `describe` that calls it: a start takes more
 * than most tests do. After each test the crawlers and the results of its account are removed; the
 * counts of the account, its audit and the log stay.
 */
export function shareApp(options: TestAppOptions = {}): () => TestApp {
  let app: TestApp | undefined;
  function started(): TestApp {
    if (app === undefined) throw new Error('the app is there while tests run');
    return app;
  }
  beforeAll(async () => {
    app = await startApp(options);
  });
  afterEach(async () => {
    for (const token of [NORMAL, JAVASCRIPT]) await clear(started(), token);
  });
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]();
  });
  return started;
}

async function clear(app: TestApp, token: string): Promise<void> {
  const { crawlers } = (await app.rest('GET', `/crawler/${token}`)).json;
  for (const { name } of crawlers) await app.rest('POST', `/crawler/${token}/${name}/delete`);
  const rids = (await app.rest('GET', `/storage/rids?token=${token}&limit=10000`)).json;
  for (let from = 0; from < rids.length; from += 100) {
    await app.rest('POST', `/storage/bulk_delete?token=${token}`, {
      rids: rids.slice(from, from + 100),
    });
  }
}
