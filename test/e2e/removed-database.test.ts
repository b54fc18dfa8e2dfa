import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { NORMAL } from '../support/tokens.ts';

test('a database that was removed under the service accepts nothing until it is put back', async () => {
  await using folder = await temporaryFolder();
  const data = join(folder.path, 'data');
  await using service = await startProcess({ DATA_DIR: data });
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'kept' });
  await service.rest('POST', `/crawler/${NORMAL}/kept/pause`);
  const url = encodeURIComponent('http://127.0.0.1:1/');
  const push = () => service.rest('GET', `/?token=${NORMAL}&crawler=kept&url=${url}`);
  expect((await push()).status).toBe(200);

  const away = join(folder.path, 'away');
  await rename(data, away);
  expect(await push()).toMatchObject({ status: 503, json: { code: 'database_unavailable' } });
  expect((await service.rest('GET', '/readyz')).status).toBe(503);
  expect((await service.rest('GET', `/crawler/${NORMAL}/kept`)).status).toBe(200);
  const told = `removed or replaced while in use: ${join(data, 'queued-crawler.db')}`;
  await eventually(() => expect(service.output).toContain(told));

  await rename(away, data);
  await eventually(async () => {
    expect((await service.rest('GET', '/readyz')).status).toBe(200);
  });
  expect((await push()).status).toBe(200);
  const { json } = await service.rest('GET', `/crawler/${NORMAL}/stats`);
  expect(json.queue.waiting).toBe(2);
});
