import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';

const PNG = Buffer.concat([
  Buffer.from('89504e470d0a1a0a', 'hex'),
  // Bytes that are no UTF-8, many of them.
  randomBytes(5_000),
]);

/** The first JavaScript of docs/webhooks.md. */
async function documentedHandler(): Promise<string> {
  const text = await readFile(resolve(import.meta.dirname, '../../docs/webhooks.md'), 'utf8');
  return /```js\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** Runs the handler as its reader would; `lines` is what it printed. */
async function startHandler(port: number, secret: string) {
  const folder = await mkdtemp(join(tmpdir(), 'webhook-handler-'));
  const file = join(folder, 'handler.mjs');
  await writeFile(file, await documentedHandler());
  const child: ChildProcess = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const url = `http://127.0.0.1:${port}/`;
  await eventually(() => fetch(url, { method: 'POST' }), { timeoutMs: 15_000 });
  return {
    url,
    lines: (): string[] => printed.split('\n').filter((line) => line !== ''),
    async [Symbol.asyncDispose]() {
      const exited = new Promise((done) => child.once('exit', done));
      child.kill();
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test('the documented handler takes pictures, compressed pages and JSON, each once, and nothing that is not genuine', async () => {
  await using site = await startSite({
    routes: {
      '/picture.png': (_request, response) => {
        response.writeHead(200, { 'content-type': 'image/png' }).end(PNG);
      },
    },
  });
  await using app = await startApp();
  const port = await freePort();
  const made = await app.rest('POST', `/crawler/${NORMAL}`, {
    name: 'documented',
    callback_url: `http://127.0.0.1:${port}/`,
  });
  await using handler = await startHandler(port, made.json.crawler.webhook_secret);
  const crawler = await createCrawler(app, 'documented', { callback_url: handler.url });
  const rids = [
    await crawler.push(`${site.url}/picture.png`),
    await crawler.push(`${site.url}/page/1?size=100000`),
    await crawler.push(`${site.url}/picture.png?2`, '&format=json'),
    await crawler.push(`${site.url}/page/2`, '&format=json'),
  ];
  await eventually(async () =>
    expect((await crawler.details()).activity).toMatchObject({
      completed: 4,
      deliveries_pending: 0,
    }),
  );
  const lines = handler.lines();
  expect(new Set(lines.map((line) => line.split(' ')[0]))).toEqual(new Set(rids));
  expect(lines).toHaveLength(rids.length);
  expect(lines.find((line) => line.startsWith(rids[0] ?? ''))).toContain(
    `200 image/png ${PNG.length}`,
  );
  for (const rid of rids) {
    const { json } = await app.rest('GET', `${crawler.path}/deliveries/${rid}`);
    expect(json.attempts).toMatchObject([{ status: 204 }]);
  }
  const forged = await fetch(handler.url, {
    method: 'POST',
    headers: {
      rid: 'forged',
      'webhook-id': 'forged',
      'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
      'webhook-signature': `v1,${Buffer.alloc(32).toString('base64')}`,
    },
    body: 'forged',
  });
  expect(forged.status).toBe(401);
  expect(handler.lines()).toHaveLength(4);
});
