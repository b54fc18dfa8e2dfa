import { X509Certificate } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { errorText } from '../domain/error-text.ts';
import { toDay } from '../domain/stats.ts';
import type { SetupFinding } from '../service/operator/setup.ts';
import { readTlsFiles } from './setting-files.ts';

/** What the files of the certificate hold now, which new connections get within a minute. */
export async function certificateFinding(
  { tlsCertFile, tlsKeyFile }: Pick<Config, 'tlsCertFile' | 'tlsKeyFile'>,
  now: Date,
): Promise<SetupFinding> {
  try {
    const { cert } = await readTlsFiles(tlsCertFile, tlsKeyFile);
    return findingOf(new X509Certificate(cert), now);
  } catch (error) {
    return {
      state: 'failed',
      finding: `The files of the certificate cannot be used: ${errorText(error)}.`,
      advice: 'The former certificate stays until this process ends: write both files anew.',
    };
  }
}

function findingOf({ validFrom, validTo }: X509Certificate, now: Date): SetupFinding {
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  const failed = (finding: string): SetupFinding => {
    const advice = 'Clients refuse it: renew it, or set the clock of this machine right.';
    return { state: 'failed', finding, advice };
  };
  if (now > to) return failed(`The certificate ended on ${toDay(to)}.`);
  if (now < from) return failed(`The certificate begins on ${toDay(from)}, which is to come.`);
  const finding = `The service speaks TLS, with a certificate until ${toDay(to)}.`;
  return { state: 'ok', finding, advice: '' };
}
