import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startApp, type TestApp } from './app.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { TLS_FIXTURE } from './tls-fixture.ts';

/** Starts the app with the certificate of {@link TLS_FIXTURE}, as `https://127.0.0.1:PORT`. */
export async function startTlsApp(env: Readonly<Record<string, string>> = {}): Promise<TestApp> {
  await using folder = await temporaryFolder();
  const files = { cert: join(folder.path, 'cert.pem'), key: join(folder.path, 'key.pem') };
  await writeFile(files.cert, TLS_FIXTURE.cert);
  await writeFile(files.key, TLS_FIXTURE.key);
  return await startApp({ env: { TLS_CERT: files.cert, TLS_KEY: files.key, ...env } });
}
