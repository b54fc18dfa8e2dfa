import { X509Certificate } from 'node:crypto';
import { type ServiceClock, wallNow } from '../domain/clock.ts';
import { DAY_MS } from '../domain/durations.ts';
import type { Logger } from '../domain/logger.ts';
import type { TlsFiles } from './setting-files.ts';

/** Knows when the certificate that the service uses ends. */
export interface CertificateExpiry {
  readonly endsAt: Date;
  /** Another one is used from now on. */
  use(files: Pick<TlsFiles, 'cert'>): void;
  /** Logs once a day that the certificate ends within {@link SOON_MS}, or has ended. */
  look(): void;
}

/** A certificate that is renewed by itself has mostly been renewed 30 days before its end. */
const SOON_MS = 14 * DAY_MS;

/** Reads the end of the first certificate of the chain, which is the service's own. */
export function createCertificateExpiry(deps: {
  readonly files: Pick<TlsFiles, 'cert'>;
  readonly clock: ServiceClock;
  readonly logger: Pick<Logger, 'warn' | 'error'>;
}): CertificateExpiry {
  const { clock, logger } = deps;
  let endsAt = endOf(deps.files);
  let loggedAtMs = Number.NEGATIVE_INFINITY;

  return {
    get endsAt() {
      return endsAt;
    },
    use(files) {
      const next = endOf(files);
      if (next.getTime() !== endsAt.getTime()) loggedAtMs = Number.NEGATIVE_INFINITY;
      endsAt = next;
    },
    look() {
      const nowMs = wallNow(clock).getTime();
      const leftMs = endsAt.getTime() - nowMs;
      if (leftMs > SOON_MS || nowMs - loggedAtMs < DAY_MS) return;
      loggedAtMs = nowMs;
      if (leftMs <= 0) {
        logger.error({ endsAt }, 'the certificate has ended: clients refuse it, renew TLS_CERT');
      } else {
        const daysLeft = Math.floor(leftMs / DAY_MS);
        logger.warn({ endsAt, daysLeft }, 'the certificate ends soon: renew TLS_CERT');
      }
    },
  };
}

function endOf({ cert }: Pick<TlsFiles, 'cert'>): Date {
  return new Date(new X509Certificate(cert).validTo);
}
