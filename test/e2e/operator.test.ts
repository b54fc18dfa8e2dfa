import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { expect, test } from 'vitest';
import { OperatorService, SetupState } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { ADMIN, NORMAL, startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { createGrpcClient } from '../support/grpc-client.ts';
import { startMailServer } from '../support/mail-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createFrozenClock } from '../support/test-clock.ts';

const admin = { authorization: `Bearer ${ADMIN}` };

interface Item {
  readonly name: string;
  readonly state: string;
  readonly finding: string;
  readonly advice: string;
  readonly settings: readonly string[];
}

async function setup(app: TestApp, query = ''): Promise<Map<string, Item>> {
  const reply = await app.rest('GET', `/installation/setup${query}`, undefined, admin);
  expect(reply.status, reply.text).toBe(200);
  const { items } = reply.json as { items: Item[] };
  return new Map(items.map((item) => [item.name, item]));
}

test('an operator sees the database and the processes, over each protocol and with the admin token only', async () => {
  await using app = await startApp();
  const rest = (await app.rest('GET', '/installation', undefined, admin)).json;
  expect(rest.version).toMatch(/^\d+\.\d+\.\d+/);
  expect(rest.database.version).toMatch(/^\d+\.\d+/);
  expect(rest.database.latency_ms).toBeGreaterThan(0);
  expect(rest.processes).toMatchObject([
    { role: 'all', version: rest.version, is_answering: true, crawls: 0 },
  ]);
  const [own] = rest.processes;
  expect(own.memory_bytes).toBeGreaterThan(10_000_000);
  expect(own.event_loop_use).toBeLessThanOrEqual(1);
  expect(Date.parse(own.started_at)).toBeLessThanOrEqual(Date.parse(own.reported_at));

  using grpc = createGrpcClient(`127.0.0.1:${app.port}`);
  const installation = await grpc.call(OperatorService.method.getInstallation, {}, ADMIN);
  expect(installation.processes.map(({ id }) => id)).toEqual([own.id]);
  const client = createClient(
    OperatorService,
    createConnectTransport({ baseUrl: app.url, httpVersion: '1.1' }),
  );
  const { items } = await client.getSetup({}, { headers: admin });
  expect(items.some(({ state }) => state === SetupState.UNSPECIFIED)).toBe(false);

  for (const path of ['/installation', '/installation/setup?check=true']) {
    const other = await app.rest('GET', path, undefined, { authorization: `Bearer ${NORMAL}` });
    expect(other.status).toBe(401);
    expect((await app.rest('GET', path)).status).toBe(401);
  }
  await eventually(() => {
    const audits = app.log.filter((line) => line.includes('"audit":"admin"'));
    expect(audits.some((line) => line.includes('GetInstallation'))).toBe(true);
  });
});

test('who asks for backups or changes the log is told in the log, and how it ended', async () => {
  await using app = await startApp();
  await app.rest('GET', '/backup', undefined, admin);
  await app.rest('GET', '/backup/queued-crawler-1.db', undefined, admin);
  await app.rest('GET', '/log-level', undefined, { authorization: `Bearer ${NORMAL}` });
  await app.rest('PUT', '/log-level/loud', undefined, admin);
  await app.rest('DELETE', '/log-level', undefined, admin);
  await app.rest('PUT', '/log-level/info', undefined, admin);
  const isMongo = process.env.TEST_STORE === 'mongodb';
  const refusedBackup = isMongo ? 'backup_not_embedded' : undefined;
  await eventually(() => {
    const audits = app.log.filter((line) => line.includes('"audit":"admin"'));
    expect(audits.map((line) => JSON.parse(line) as object)).toMatchObject([
      { method: 'GET /backup', by: 'admin', outcome: refusedBackup ?? 'ok' },
      { method: 'GET /backup', by: 'admin', outcome: refusedBackup ?? 'backup_not_found' },
      { method: 'GET /log-level', by: 'unauthenticated', outcome: 'invalid_token' },
      { method: 'PUT /log-level', by: 'admin', outcome: 'invalid_level', msg: 'admin call failed' },
      { method: 'DELETE /log-level', by: 'admin', outcome: 'method_not_allowed' },
      { method: 'PUT /log-level', by: 'admin', outcome: 'ok', msg: 'admin call' },
    ]);
  });
});

test('what is not set up is said with what to do, and what is set up is tried when asked for', async () => {
  await using mail = await startMailServer();
  await using app = await startApp({
    env: { SMTP_URL: mail.url, CHROMIUM_PATH: '/nowhere/chromium' },
  });
  const before = await setup(app);
  expect(before.get('mail')).toMatchObject({
    state: 'unchecked',
    settings: ['SMTP_URL', 'MAIL_FROM'],
  });
  expect(before.get('browser')).toMatchObject({ state: 'missing' });
  expect(before.get('browser')?.advice).toContain('CHROMIUM_PATH');
  expect(before.get('monitoring')).toMatchObject({ state: 'missing' });
  expect(before.get('account_addresses')?.finding).toContain('default');
  expect(before.get('tls')).toMatchObject({ state: 'ok' });
  // What needs attention comes first.
  const states = [...before.values()].map(({ state }) => state);
  const order = ['failed', 'missing', 'unchecked', 'ok'];
  expect(states).toEqual(states.toSorted((a, b) => order.indexOf(a) - order.indexOf(b)));

  const tried = await setup(app, '?check=true');
  expect(tried.get('mail')).toMatchObject({ state: 'ok' });
  await mail[Symbol.asyncDispose]();
  const failed = await setup(app, '?check=true');
  expect(failed.get('mail')).toMatchObject({ state: 'failed' });
  expect(failed.get('mail')?.advice).toContain('SMTP_URL');

  await using plain = await startApp({ env: { ACCOUNT_EMAIL: 'owner@example.com' } });
  const other = await setup(plain);
  expect(other.get('mail')).toMatchObject({ state: 'missing' });
  expect(other.get('account_addresses')).toMatchObject({ state: 'ok' });
});

test('callback URLs that are probed late are named by the set-up', async () => {
  const clock = createFrozenClock();
  const env = { PROBE_INTERVAL_SECONDS: '600', ACCOUNT_PROBES_PER_MINUTE: '1' };
  await using app = await startApp({ clock, env });
  for (const name of ['a', 'b', 'c']) {
    const body = { name, callback_url: `http://127.0.0.1:8099/${name}` };
    expect((await app.rest('POST', `/crawler/${NORMAL}`, body)).status).toBe(200);
  }
  expect((await setup(app)).get('monitoring')).toMatchObject({ state: 'ok' });
  // One of them may be probed now, the others a minute later each.
  clock.advance(5 * 600_000 + 1_000);
  await eventually(async () => {
    const late = (await setup(app)).get('monitoring');
    expect(late).toMatchObject({ state: 'failed' });
    expect(late?.finding).toMatch(/^The callback URLs of [23] crawlers were not probed/);
    expect(late?.advice).toContain('ACCOUNT_PROBES_PER_MINUTE');
  });
});

test('a browser that starts is found to work', async () => {
  await using app = await startApp();
  const items = await setup(app, '?check=true');
  expect(items.get('browser')).toMatchObject({ state: 'ok' });
  expect(items.get('browser')?.finding).toMatch(/chrom.*, with WebGL/i);
});

test('a browser without WebGL is found, unless that is what the operator wants', async () => {
  await using folder = await temporaryFolder();
  const chromium = join(folder.path, 'chromium');
  const script = `#!/bin/sh\nexec ${await findChromium('')} "$@" --disable-3d-apis\n`;
  await writeFile(chromium, script, { mode: 0o700 });
  for (const [webgl, state] of [
    ['on', 'missing'],
    ['off', 'ok'],
  ] as const) {
    await using app = await startApp({ env: { CHROMIUM_PATH: chromium, CHROMIUM_WEBGL: webgl } });
    expect((await setup(app, '?check=true')).get('browser')).toMatchObject({ state });
  }
});

test('the packages that a Chromium lacks are named', async () => {
  await using folder = await temporaryFolder();
  const chromium = join(folder.path, 'chromium');
  await using app = await startApp({ env: { CHROMIUM_PATH: chromium } });
  for (const [library, advice] of [
    ['libnspr4.so', 'apt-get install libnss3 libexpat1'],
    ['libexpat.so.1', 'apt-get install libnss3 libexpat1'],
    ['libgtk-3.so.0', 'the package that has libgtk-3.so.0'],
  ] as const) {
    const line = `chromium: error while loading shared libraries: ${library}: cannot open shared object file: No such file or directory`;
    await writeFile(chromium, `#!/bin/sh\necho '${line}' >&2\nexit 127\n`, { mode: 0o700 });
    for (const name of ['browser', 'fonts']) {
      const item = (await setup(app, '?check=true')).get(name);
      expect(item).toMatchObject({ state: 'failed' });
      expect(item?.finding).toContain(library);
      expect(item?.advice).toContain(advice);
    }
  }
});

const hasFontList = spawnSync('fc-list').status === 0;

test.runIf(hasFontList)('scripts without a font are named, with what to install', async () => {
  await using app = await startApp();
  const fonts = (await setup(app, '?check=true')).get('fonts');
  const languages = { Japanese: 'ja', Korean: 'ko', Hindi: 'hi', Thai: 'th' };
  const lacks = Object.entries(languages)
    .filter(([, code]) => spawnSync('fc-list', [`:lang=${code}`]).stdout.length === 0)
    .map(([script]) => script);
  const named = Object.keys(languages).filter((script) => fonts?.finding.includes(script));
  expect(named).toEqual(lacks);
  if (lacks.length > 0) expect(fonts?.advice).toContain('fonts-noto-core');
});

test.runIf(process.env.TEST_STORE === 'mongodb')(
  'each of several processes is listed, with its role, whichever answers',
  async () => {
    await using one = await startApp();
    await using two = await startApp({ dataDir: one.dataDir, env: { ROLE: 'api' } });
    await eventually(async () => {
      for (const [app, role] of [
        [one, 'all'],
        [two, 'api'],
      ] as const) {
        const { processes } = (await app.rest('GET', '/installation', undefined, admin)).json;
        expect(processes).toHaveLength(2);
        expect(processes[0]).toMatchObject({ role, is_answering: true });
        expect(processes[1]).toMatchObject({ is_answering: false });
      }
    });
  },
);
