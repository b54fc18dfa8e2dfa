import { existsSync } from 'node:fs';
import { copyFile, cp, open, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { restoreBackup } from '../../src/backup/restore-backup.ts';
import { NORMAL, startApp } from '../support/app.ts';
import { startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const NAME = 'queued-crawler.db';

/** A data folder whose process was killed: all its data are in the log. */
async function killedService() {
  const folder = await temporaryFolder();
  const dataDir = join(folder.path, 'data');
  await using service = await startProcess({ DATA_DIR: dataDir });
  for (let n = 0; n < 10; n++) {
    const body = { name: `crawler-${n}` };
    expect((await service.rest('POST', `/crawler/${NORMAL}`, body)).status).toBe(200);
  }
  await cp(dataDir, join(folder.path, 'live-copy'), { recursive: true });
  await service.kill9();
  const database = join(dataDir, NAME);
  return Object.assign(folder, { dataDir, database, log: `${database}-wal` });
}

async function crawlersIn(dataDir: string): Promise<number> {
  await using app = await startApp({ dataDir });
  const { json } = await app.rest('GET', `/crawler/${NORMAL}`);
  return json.crawlers.length;
}

const damages: readonly [why: string, damage: (log: string) => Promise<unknown>][] = [
  ['is gone', (log) => rm(log)],
  ['has a damaged header', flipHeader],
  ['was cut', async (log) => truncate(log, Math.floor((await stat(log)).size / 2))],
];

async function flipHeader(log: string): Promise<void> {
  await using file = await open(log, 'r+');
  await file.write(Buffer.alloc(32, 0xff), 0, 32, 0);
}

test.each(damages)(
  'a database whose log %s is not started as an older one, until the loss is accepted',
  async (_why, damage) => {
    await using killed = await killedService();
    const intact = join(killed.path, 'intact-log');
    await copyFile(killed.log, intact);
    await damage(killed.log);
    const refusal = `lost.*${killed.database}-wal.*restore.*${killed.database}-mark`;
    await expect(startProcess({ DATA_DIR: killed.dataDir })).rejects.toThrow(
      new RegExp(`cannot start: .*${refusal}`),
    );
    await expect(startApp({ dataDir: killed.dataDir })).rejects.toThrow(new RegExp(refusal));
    // The refusal changes nothing: what is put back is there.
    await copyFile(intact, killed.log);
    expect(await crawlersIn(killed.dataDir)).toBe(10);
  },
);

test('a lost log that is accepted leaves what there is', async () => {
  await using killed = await killedService();
  await rm(killed.log);
  await rm(`${killed.database}-mark`);
  expect(await crawlersIn(killed.dataDir)).toBe(0);
});

test('a killed database, a live copy, one that another program opened and a restored one start', async () => {
  await using killed = await killedService();
  const copies = ['killed', 'opened'].map((name) => join(killed.path, name));
  expect(await crawlersIn(join(killed.path, 'live-copy'))).toBe(10);
  for (const copy of copies) await cp(killed.dataDir, copy, { recursive: true });
  const other = new DatabaseSync(killed.database);
  other.prepare('SELECT * FROM crawlers').all();
  other.close();
  expect(existsSync(killed.log)).toBe(false);
  for (const folder of [killed.dataDir, ...copies, killed.dataDir]) {
    expect(await crawlersIn(folder)).toBe(10);
  }
  const file = join(copies[0] ?? '', NAME);
  await restoreBackup({ file, dataDir: killed.dataDir, replace: true });
  expect(await crawlersIn(killed.dataDir)).toBe(10);
});
