import { getPublicSuffix } from 'tough-cookie';

/** The registrable domain of an http address, else its host; undefined for other addresses. */
export function siteOf(address: string): string | undefined {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return getPublicSuffix(url.hostname, { ignoreError: true }) ?? url.hostname;
}
