import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN, callRest, JAVASCRIPT, NORMAL, type RestReply } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { type SiteRoute, startSite } from '../support/site.ts';

/** The service as `npm start` runs it, npm, its shell and the service in a process group of their own. */
interface NpmStart extends AsyncDisposable {
  readonly npm: ChildProcess;
  /** What all of them printed. */
  readonly output: string;
  /** When the last of them has ended. */
  readonly ended: Promise<unknown>;
  signal(to: 'npm' | 'group', signal: NodeJS.Signals): void;
  rest(method: string, path: string, body?: unknown): Promise<RestReply>;
}

async function npmStart(): Promise<NpmStart> {
  const folder = await mkdtemp(join(tmpdir(), 'queued-crawler-npm-'));
  const npm = spawn('npm', ['start'], {
    cwd: join(import.meta.dirname, '..', '..'),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      npm_config_update_notifier: 'false',
      PORT: '0',
      DATA_DIR: join(folder, 'data'),
      NORMAL_TOKEN: NORMAL,
      JAVASCRIPT_TOKEN: JAVASCRIPT,
      ADMIN_TOKEN: ADMIN,
      NETWORK_ALLOW: '127.0.0.1',
      WEBHOOK_ACK_TIMEOUT_MS: '2000',
    },
  });
  const group = -(npm.pid ?? 0);
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  // The pipes stay open as long as any of the processes lives.
  const ended = once(npm, 'close');
  const url = await eventually(
    () => {
      const found = /Queued crawler: (\S+)/.exec(output)?.[1];
      expect(found, output).toBeDefined();
      return found ?? '';
    },
    { timeoutMs: 30_000 },
  );
  return {
    npm,
    get output() {
      return output;
    },
    ended,
    signal(to, signal) {
      process.kill(to === 'npm' ? -group : group, signal);
    },
    rest: (method, path, body) => callRest(url + path, method, body),
    async [Symbol.asyncDispose]() {
      try {
        process.kill(group, 'SIGKILL');
      } catch {
        // They have ended already.
      }
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A page that takes a second and a half from when the test says so. */
function heldPage() {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const route: SiteRoute = (_request, response) => {
    asked.resolve();
    void released.promise.then(() => setTimeout(() => response.end('slow'), 1_500));
  };
  return { asked: asked.promise, release: () => released.resolve(), route };
}

test.each([
  ['group', 'SIGINT'],
  ['group', 'SIGTERM'],
  ['npm', 'SIGINT'],
  ['npm', 'SIGTERM'],
] as const)(
  'to the %s, %s lets a crawl end and reach its receiver',
  async (to, signal) => {
    const page = heldPage();
    await using site = await startSite({ routes: { '/slow': page.route } });
    await using receiver = await startReceiver();
    await using service = await npmStart();
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'hook', callback_url: receiver.url });
    const url = encodeURIComponent(`${site.url}/slow`);
    const { json } = await service.rest('GET', `/?token=${NORMAL}&crawler=hook&url=${url}`);
    await page.asked;
    service.signal(to, signal);
    await eventually(() => expect(service.output).toContain('"stopping"'), { timeoutMs: 10_000 });
    page.release();
    const [post] = await receiver.until(1);
    expect([post?.rid, post?.text]).toEqual([json.rid, 'slow']);
    await service.ended;
    expect(service.output).toContain('"stopped"');
    expect(service.output).not.toContain('at once');
  },
  60_000,
);

test('a second signal stops at once', async () => {
  const page = heldPage();
  await using site = await startSite({ routes: { '/slow': page.route } });
  await using service = await npmStart();
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'kept' });
  const url = encodeURIComponent(`${site.url}/slow`);
  await service.rest('GET', `/?token=${NORMAL}&crawler=kept&url=${url}`);
  await page.asked;
  service.signal('group', 'SIGINT');
  await eventually(() => expect(service.output).toContain('"stopping"'), { timeoutMs: 10_000 });
  await eventually(
    () => {
      try {
        service.signal('group', 'SIGINT');
      } catch {
        // The group is gone.
      }
      expect(service.output).toContain('stopping at once');
    },
    { timeoutMs: 10_000 },
  );
  await service.ended;
}, 60_000);
