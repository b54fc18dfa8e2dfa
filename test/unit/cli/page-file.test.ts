import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { StoredResultSchema } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { openPageFolder } from '../../../src/cli/page-file.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('results are written into the folder and nowhere else, whatever rid a service answers', async () => {
  await using outside = await temporaryFolder();
  const folder = join(outside.path, 'pages');
  const pages = await openPageFolder(folder, 'x/../../../crawler');
  const result = { contentType: 'text/html', body: Buffer.from('owned') };
  const page = { ...create(StoredResultSchema, result), text: () => 'owned' };
  for (const rid of ['../owned', `${outside.path}/owned`, '..', '', 'a/b', 'a\0b']) {
    await expect(pages.write({ ...page, rid }), rid).rejects.toThrow('is no rid');
    await expect(pages.has(rid), rid).rejects.toThrow('is no rid');
  }
  const rid = '6650f1c2a9b3d4e5f6071829';
  await pages.write({ ...page, rid });
  await pages.writeToken('place');
  expect(await pages.has(rid)).toBe(true);
  expect(await readFile(join(folder, `${rid}.html`), 'utf8')).toBe('owned');
  expect(await readdir(outside.path)).toEqual(['pages']);
  expect((await readdir(folder)).toSorted()).toEqual([
    '.resume-x%2F..%2F..%2F..%2Fcrawler',
    `${rid}.html`,
    `${rid}.json`,
  ]);
});
