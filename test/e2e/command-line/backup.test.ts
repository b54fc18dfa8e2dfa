import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ADMIN } from '../../support/app.ts';
import { runCommandLine } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startTlsApp } from '../../support/tls-app.ts';
import { TLS_FIXTURE } from '../../support/tls-fixture.ts';

test('a backup of a service with a certificate of its own is fetched with --ca, and refused without', async () => {
  await using folder = await temporaryFolder();
  await using app = await startTlsApp({ DATA_DIR: join(folder.path, 'data') });
  const ca = join(folder.path, 'ca.pem');
  await writeFile(ca, TLS_FIXTURE.cert);
  const env = {
    HOME: '/nonexistent',
    QUEUED_CRAWLER_URL: app.url,
    QUEUED_CRAWLER_ADMIN_TOKEN: ADMIN,
  };
  const file = join(folder.path, 'backup.db');
  await writeFile(file, 'an older backup, which is replaced');
  const fetched = await runCommandLine(['--ca', ca, 'backup', file], { env });
  expect([fetched.code, fetched.stderr]).toEqual([0, expect.any(String)]);
  expect(fetched.stdout).toBe(`Backed up to ${file}: 0 URLs, 0 results.\n`);
  const refused = await runCommandLine(['backup', file], { env });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toMatch(/does not answer: .*certificate/);
});
