import { copyFile, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:https';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { startApp, type TestApp } from '../support/app.ts';
import { makeCertificate } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

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
