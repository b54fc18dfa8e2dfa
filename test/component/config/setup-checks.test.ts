import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { setupChecks } from '../../../src/app/setup-checks.ts';
import { readConfig } from '../../../src/config/config.ts';
import { DAY_MS } from '../../../src/domain/durations.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** What the set-up says of one thing, with these settings, `aheadMs` after the present moment. */
async function findingOf(name: string, env: Record<string, string>, folder: string, aheadMs = 0) {
  const clock = createTestClock();
  clock.advance(aheadMs);
  const checks = setupChecks({
    config: readConfig(env),
    logger: Object.assign(createRecordingLogger(), { level: 'info' }),
    traits: { shared: false, localDisk: folder },
    clock,
    crawlers: { lateProbes: () => Promise.resolve(0) },
    surveyPools: () => Promise.resolve({ opened: 0, sealed: [] }),
  });
  return checks.find((check) => check.name === name)?.look();
}

test('a certificate is named with its end, and is a fault once it has ended', async () => {
  await using folder = await temporaryFolder();
  const files = { TLS_CERT: join(folder.path, 'cert.pem'), TLS_KEY: join(folder.path, 'key.pem') };
  const { cert, key } = makeCertificate();
  await writeFile(files.TLS_CERT, cert);
  await writeFile(files.TLS_KEY, key);
  const at = (aheadMs: number) => findingOf('tls', files, folder.path, aheadMs);
  const date = new Date(Date.now() + 2 * DAY_MS).toISOString().slice(0, 10);
  expect(await at(0)).toMatchObject({ state: 'ok', finding: expect.stringContaining(date) });
  const ended = { state: 'failed', finding: `The certificate ended on ${date}.` };
  expect(await at(3 * DAY_MS)).toMatchObject(ended);
  const early = { state: 'failed', finding: expect.stringContaining('begins on') };
  expect(await at(-3 * DAY_MS)).toMatchObject(early);
});

test('a renewed certificate that cannot be used is a fault', async () => {
  await using folder = await temporaryFolder();
  const files = { TLS_CERT: join(folder.path, 'cert.pem'), TLS_KEY: join(folder.path, 'key.pem') };
  await writeFile(files.TLS_CERT, makeCertificate().cert);
  await writeFile(files.TLS_KEY, makeCertificate().key);
  expect(await findingOf('tls', files, folder.path)).toMatchObject({
    state: 'failed',
    finding: expect.stringMatching(/TLS_CERT and TLS_KEY: cannot be used together/),
  });
});

test('a disk with less than MIN_FREE_BYTES is a fault, however much is free', async () => {
  await using folder = await temporaryFolder();
  // No disk has that much.
  const env = { MIN_FREE_BYTES: String(2 ** 52) };
  expect(await findingOf('disk', env, folder.path)).toMatchObject({
    state: 'failed',
    finding: expect.stringContaining('less than MIN_FREE_BYTES'),
  });
});
