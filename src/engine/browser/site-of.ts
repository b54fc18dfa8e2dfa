import { getPublicSuffix } from 'tough-cookie';
import { parseHttpUrl } from '../../domain/target-url.ts';

/** The registrable domain of an http address, else its host; undefined for other addresses. */
export function siteOf(address: string): string | undefined {
  const url = parseHttpUrl(address);
  return url && (getPublicSuffix(url.hostname, { ignoreError: true }) ?? url.hostname);
}
