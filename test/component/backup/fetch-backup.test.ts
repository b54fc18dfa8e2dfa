import { readdir } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fetchBackup } from '../../../src/backup/fetch-backup.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const MADE = '{"backup":{"name":"queued-crawler-1.db","bytes":1000}}\n';

/** A service that answers as told, and keeps its connections open. */
async function startServer(answer: (method: string, response: ServerResponse) => void) {
  const server = createServer((request, response) => answer(request.method ?? '', response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  ['before it answers', () => undefined],
  [
    'in the middle of its progress',
    (_method: string, response: ServerResponse) =>
      void response.write('{"step":"copy","copied":1,"total":2}\n'),
  ],
  [
    'in the middle of the backup',
    (method: string, response: ServerResponse) => {
      if (method === 'POST') response.end(MADE);
      else response.writeHead(200, { 'content-length': '1000' }).write('half');
    },
  ],
])('a service that is silent %s is given up, and leaves no file', async (_when, answer) => {
  await using folder = await temporaryFolder();
  await using server = await startServer(answer);
  const fetched = fetchBackup({
    url: server.url,
    adminToken: 'token',
    file: join(folder.path, 'backup.db'),
    onProgress: () => undefined,
    silenceMs: 200,
  });
  await expect(fetched).rejects.toThrow(
    `The service at ${server.url} does not answer: nothing came for 0.2 seconds.`,
  );
  expect(await readdir(folder.path)).toEqual([]);
});

test.each([
  ['html', '<html>a proxy</html>\n'],
  ['other JSON', '{"hello":1}\n'],
  ['null', 'null\n'],
])('a server that answers %s is told as no service', async (_what, body) => {
  await using folder = await temporaryFolder();
  await using server = await startServer((_method, response) => void response.end(body));
  const fetched = fetchBackup({
    url: server.url,
    adminToken: 'token',
    file: join(folder.path, 'backup.db'),
    onProgress: () => undefined,
  });
  await expect(fetched).rejects.toThrow(
    `What answers at ${server.url} is not a service of this program.`,
  );
  expect(await readdir(folder.path)).toEqual([]);
});
