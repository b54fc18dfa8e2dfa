import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A certificate authority, and what a server of `*.DOMAIN` needs. */
export interface Certificates {
  /** File of the authority, PEM. */
  readonly caFile: string;
  readonly key: string;
  /** The server's, and the intermediate one that signed it. */
  readonly cert: string;
}

/** Makes certificates as web servers have them, with `openssl`, which must be on PATH. */
export function createCertificates(folder: string, domain: string): Certificates {
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  };
  const key = (name: string): void =>
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', path(`${name}.key`));
  const sign = (name: string, subject: string, by: string, extensions: string): void => {
    key(name);
    writeFileSync(path(`${name}.ext`), extensions);
    const request = path(`${name}.csr`);
    openssl('req', '-new', '-key', path(`${name}.key`), '-subj', subject, '-out', request);
    const signer = ['-CA', path(`${by}.pem`), '-CAkey', path(`${by}.key`), '-CAcreateserial'];
    const out = ['-extfile', path(`${name}.ext`), '-out', path(`${name}.pem`)];
    openssl('x509', '-req', '-in', request, ...signer, '-days', '30', ...out);
  };
  key('ca');
  const self = ['-subj', '/CN=Bench root', '-days', '30', '-out', path('ca.pem')];
  openssl('req', '-x509', '-new', '-key', path('ca.key'), ...self);
  sign('issuer', '/CN=Bench issuer', 'ca', 'basicConstraints=critical,CA:TRUE,pathlen:0\n');
  sign('site', `/CN=${domain}`, 'issuer', `subjectAltName=DNS:${domain},DNS:*.${domain}\n`);
  return {
    caFile: path('ca.pem'),
    key: readFileSync(path('site.key'), 'utf8'),
    cert: ['site.pem', 'issuer.pem'].map((name) => readFileSync(path(name), 'utf8')).join(''),
  };
}
