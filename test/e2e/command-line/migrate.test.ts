import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { startCommandLine } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('migrate tells by its exit code that what is there forbids a copy, and what cannot be used', async () => {
  await using folder = await temporaryFolder();
  const database = new DatabaseSync(join(folder.path, 'queued-crawler.db'));
  database.exec('PRAGMA user_version = 9999');
  database.close();
  const env = { HOME: folder.path };
  // In a process of its own: the copy is made by another one, which shares its output.
  const migrate = (from: string) =>
    startCommandLine(['migrate', '--from', from, '--to', 'mongodb://127.0.0.1:1/none'], { env })
      .ended;
  const newer = await migrate(folder.path);
  expect(newer.stderr).toContain('The database has version 9999');
  expect(newer.code).toBe(5);
  expect((await migrate(join(folder.path, 'nowhere'))).code).toBe(2);
});
