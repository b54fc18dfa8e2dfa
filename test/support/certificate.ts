import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new certificate for `localhost` that signs itself, and its key, in PEM. */
export function makeCertificate(days = 2): { readonly cert: Buffer; readonly key: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), 'certificate-'));
  const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
  try {
    const make = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
    const name = [
      '-days',
      String(days),
      '-subj',
      '/CN=localhost',
      '-keyout',
      files.key,
      '-out',
      files.cert,
    ];
    execFileSync('openssl', [...make.split(' '), ...name], { stdio: 'ignore' });
    return { cert: readFileSync(files.cert), key: readFileSync(files.key) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
