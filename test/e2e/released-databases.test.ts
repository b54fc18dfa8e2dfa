import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'databases');
const released = readdirSync(FOLDER).map((name) => name.replace('.sql', ''));

/** Where the site and the receiver of the database were when it was made. */
const OLD = { site: 'http://127.0.0.1:1', receiver: 'http://127.0.0.1:2' };

test.each(released)('a database of version %s is opened and worked on', async (version) => {
  await using folder = await temporaryFolder();
  await using site = await startSite();
  await using receiver = await startReceiver();
  const sql = readFileSync(join(FOLDER, `${version}.sql`), 'utf8');
  {
    using database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
    database.exec(
      sql.replaceAll(OLD.site, site.url).replaceAll(`${OLD.receiver}/hook`, receiver.url),
    );
  }
  await using app = await startApp({ dataDir: folder.path });
  const stored = await app.rest('GET', `/storage/rids?token=${NORMAL}`);
  expect(stored.json).toHaveLength(2);
  const page = await app.rest('GET', `/storage?token=${NORMAL}&rid=${stored.json[0]}&format=json`);
  expect(page.json).toMatchObject({ cb_status: 200, body: expect.stringContaining('<h1>Page') });
  const { json: stats } = await app.rest('GET', `/crawler/${NORMAL}/stats`);
  expect(stats.crawlers.map(({ name }: { name: string }) => name)).toEqual(['hook', 'store']);
  expect(stats).toMatchObject({ completed: 2, queue: { waiting: 2 } });
  for (const crawler of ['hook', 'store']) {
    await app.rest('POST', `/crawler/${NORMAL}/${crawler}/unpause`);
  }
  await receiver.until(1);
  await eventually(async () => {
    const after = (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json;
    expect(after).toMatchObject({ completed: 4, queue: { waiting: 0 } });
  });
});

test('there is a database of the current version or of the release before it', () => {
  expect(released.length).toBeGreaterThan(0);
});
