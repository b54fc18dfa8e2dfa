import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN } from '../support/app.ts';
import { startProcess } from '../support/service-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const text = readFileSync(join(ROOT, 'docs', 'operate.md'), 'utf8');
const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);

/** They change the machine, or need what the machine may lack: MongoDB's tools, a cluster, an engine. */
const ELSEWHERE = /systemctl|mongodump|mongorestore|npm install --global|kubectl|docker/;

async function bash(script: string, env: Readonly<Record<string, string>>) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: ROOT,
    env: { PATH, ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

const hasCurl = spawnSync('curl', ['--version']).status === 0;

test.skipIf(!hasCurl)('the commands of the operator’s path work as they are written', async () => {
  await using folder = await temporaryFolder();
  await using service = await startProcess({ DATA_DIR: join(folder.path, 'data') });
  const env = { BASE: service.url, ADMIN_TOKEN: ADMIN, HOME: folder.path };
  const own = blocks.filter((block) => !ELSEWHERE.test(block));
  expect(own.length).toBeGreaterThan(4);
  for (const block of own) {
    const script = block
      .replaceAll('/mnt/backup', folder.path)
      .replaceAll('./restored', join(folder.path, 'restored'))
      .replaceAll('curl -X', 'curl -fsS -X');
    const command = 'queued-crawler() { node bin/queued-crawler.js "$@"; }\n';
    const { code, output } = await bash(command + script, env);
    expect(code, `${block}\n${output}`).toBe(0);
  }
});
