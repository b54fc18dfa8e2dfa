import { X509Certificate } from 'node:crypto';
import { appendFile, copyFile, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../src/domain/durations.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createTestClock } from '../support/test-clock.ts';

type Certificate = ReturnType<typeof makeCertificate>;

const TIMING = { tlsCheckMs: 20 };

async function writeFiles(folder: string, { cert, key }: Certificate): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'tls.crt'), cert);
  await writeFile(join(folder, 'tls.key'), key);
}

function settings(folder: string): Record<string, string> {
  return { TLS_CERT: join(folder, 'tls.crt'), TLS_KEY: join(folder, 'tls.key') };
}

/** The certificate that a new connection gets, as PEM without line breaks. */
function presented(app: TestApp): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: app.port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(textOf(socket.getPeerCertificate().raw));
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

const textOf = (der: Buffer): string => der.toString('base64');

function derOf({ cert }: Certificate): string {
  return cert.toString().replace(/-----[A-Z ]+-----|\s/g, '');
}

/** Resolves when the service has looked at its files since the call: it uses what they hold, here the same certificate with a line more. */
async function looks(app: TestApp, folder: string): Promise<void> {
  const renewals = () => app.log.filter((line) => line.includes('a renewed certificate')).length;
  const before = renewals();
  await appendFile(join(folder, 'tls.crt'), '\n');
  await eventually(() => expect(renewals()).toBeGreaterThan(before));
}

/** Calls /healthz on the one connection of the agent. Resolves with the connection. */
function probe(app: TestApp, agent: Agent): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    get(`${app.url}/healthz`, { agent }, (response) => {
      const { socket, statusCode } = response;
      response.resume().on('end', () => {
        if (statusCode === 200) resolve(socket as TLSSocket);
        else reject(new Error(`status ${statusCode}`));
      });
    }).on('error', reject);
  });
}

test('new files of TLS_CERT and TLS_KEY are for new connections, and open ones continue', async () => {
  await using folder = await temporaryFolder();
  const [first, second] = [makeCertificate(), makeCertificate()];
  await writeFiles(folder.path, first);
  await using app = await startApp({ env: settings(folder.path), timing: TIMING });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  try {
    const socket = await probe(app, agent);
    expect(await presented(app)).toBe(derOf(first));
    await writeFiles(folder.path, second);
    await eventually(async () => expect(await presented(app)).toBe(derOf(second)));
    expect(await probe(app, agent)).toBe(socket);
    expect(app.log.filter((line) => line.includes('a renewed certificate is used'))).toHaveLength(
      1,
    );
  } finally {
    agent.destroy();
  }
});

test('a folder that is replaced by a link, as Kubernetes does, is noticed', async () => {
  await using folder = await temporaryFolder();
  const [first, second] = [makeCertificate(), makeCertificate()];
  const at = (name: string): string => join(folder.path, name);
  await writeFiles(at('..1'), first);
  await symlink('..1', at('..data'));
  for (const name of ['tls.crt', 'tls.key']) await symlink(join('..data', name), at(name));
  await using app = await startApp({ env: settings(folder.path), timing: TIMING });
  expect(await presented(app)).toBe(derOf(first));
  await writeFiles(at('..2'), second);
  await symlink('..2', at('..data_tmp'));
  await rename(at('..data_tmp'), at('..data'));
  await eventually(async () => expect(await presented(app)).toBe(derOf(second)));
});

test.each<[title: string, spoil: (folder: string, next: Certificate) => Promise<void>]>([
  ['a certificate without its key', (folder, { cert }) => writeFile(join(folder, 'tls.crt'), cert)],
  [
    'half a certificate',
    (folder, { cert, key }) => writeFiles(folder, { cert: cert.subarray(0, 300), key }),
  ],
  ['no certificate', (folder, { key }) => writeFiles(folder, { cert: Buffer.of(), key })],
  ['no file', (folder) => rename(join(folder, 'tls.crt'), join(folder, 'former.crt'))],
])('%s is not used: the log says so once, and the former one stays', async (_title, spoil) => {
  await using folder = await temporaryFolder();
  const [first, second] = [makeCertificate(), makeCertificate()];
  await writeFiles(folder.path, first);
  await using app = await startApp({ env: settings(folder.path), timing: TIMING });
  const refusals = (): string[] =>
    app.log.filter((line) => line.includes('the former certificate stays'));
  await spoil(folder.path, second);
  await eventually(() => expect(refusals()).toHaveLength(1));
  expect(refusals()[0]).toMatch(/TLS_CERT/);
  expect(await presented(app)).toBe(derOf(first));

  await writeFiles(join(folder.path, 'next'), second);
  for (const name of ['tls.key', 'tls.crt']) {
    await copyFile(join(folder.path, 'next', name), join(folder.path, name));
  }
  await eventually(async () => expect(await presented(app)).toBe(derOf(second)));
});

/** The moment of the gauge, in milliseconds; undefined without one. */
async function expiryOf({ url }: TestApp): Promise<number | undefined> {
  const text = await new Promise<string>((resolve, reject) => {
    get(`${url}/metrics`, { rejectUnauthorized: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
  const found = /^queued_crawler_tls_certificate_expiry_timestamp_seconds (\S+)$/m.exec(text)?.[1];
  return found === undefined ? undefined : Number(found) * 1_000;
}

const endOf = ({ cert }: Certificate): number =>
  new Date(new X509Certificate(cert).validTo).getTime();

test('a certificate that ends soon is logged once a day from 14 days before, until it is renewed', async () => {
  await using folder = await temporaryFolder();
  const clock = createTestClock();
  const first = makeCertificate(20);
  await writeFiles(folder.path, first);
  await using app = await startApp({ env: settings(folder.path), timing: TIMING, clock });
  const lines = (text: string) =>
    app.log.filter((line) => line.includes(text)).map((line) => JSON.parse(line));
  const soon = () => lines('the certificate ends soon');
  expect(await expiryOf(app)).toBe(endOf(first));
  clock.advance(5 * DAY_MS);
  await looks(app, folder.path);
  expect(soon()).toEqual([]);
  clock.advance(1.5 * DAY_MS);
  await eventually(() => expect(soon()).toHaveLength(1));
  expect(soon()[0]).toMatchObject({ level: 40, daysLeft: 13 });
  expect(Date.parse(soon()[0].endsAt)).toBe(endOf(first));
  clock.advance(DAY_MS / 2);
  await looks(app, folder.path);
  expect(soon()).toHaveLength(1);
  clock.advance(DAY_MS / 2);
  await eventually(() => expect(soon()).toHaveLength(2));
  clock.advance(20 * DAY_MS);
  await eventually(() => expect(lines('the certificate has ended')).toMatchObject([{ level: 50 }]));

  const second = makeCertificate(90);
  await writeFiles(folder.path, second);
  await eventually(async () => expect(await expiryOf(app)).toBe(endOf(second)));
  clock.advance(DAY_MS);
  await looks(app, folder.path);
  expect(lines('the certificate has ended')).toHaveLength(1);
  expect(soon()).toHaveLength(2);
});

test('without TLS there is no moment at which a certificate ends', async () => {
  await using app = await startApp();
  const { text } = await app.rest('GET', '/metrics');
  expect(text).toContain('queued_crawler_info');
  expect(text).not.toContain('tls_certificate');
});
