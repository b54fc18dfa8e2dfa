import { X509Certificate } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { Logger } from '../domain/logger.ts';
import type { CertificateExpiry } from './certificate-expiry.ts';
import { readTlsFiles, type TlsFiles } from './setting-files.ts';

/** The collaborators of the renewal. */
export interface TlsRenewalDeps {
  readonly config: Pick<Config, 'tlsCertFile' | 'tlsKeyFile'>;
  /** What is used so far. */
  readonly used: TlsFiles;
  /** Time between two looks at the files. */
  readonly everyMs: number;
  /** Uses other ones for new connections. */
  readonly use: (files: TlsFiles) => void;
  readonly expiry: Pick<CertificateExpiry, 'use' | 'look'>;
  readonly logger: Logger;
}

/**
 * Looks at the files of the certificate again and again, and uses them when they have changed and
 * can be used. Their content decides, so links may be replaced. Each look is one at the end of the
 * certificate, too. Returns what stops it.
 */
export function startTlsRenewal({ config, everyMs, use, expiry, logger, ...deps }: TlsRenewalDeps) {
  let { used } = deps;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  async function look(): Promise<void> {
    try {
      const found = await readTlsFiles(config.tlsCertFile, config.tlsKeyFile);
      failures = 0;
      if (isStopped || (found.cert.equals(used.cert) && found.key.equals(used.key))) return;
      use(found);
      expiry.use(found);
      used = found;
      const { validTo } = new X509Certificate(found.cert);
      logger.info({ validTo }, 'a renewed certificate is used for new connections');
    } catch (error) {
      failures += 1;
      // The two files are written one after the other: a single look may come between them.
      if (failures !== 2) return;
      logger.warn(
        { err: error },
        'the renewed certificate cannot be used: the former certificate stays',
      );
    }
  }
  function plan(): void {
    if (isStopped) return;
    expiry.look();
    timer = setTimeout(() => void look().then(plan), everyMs).unref();
  }
  plan();
  return (): void => {
    isStopped = true;
    clearTimeout(timer);
  };
}
