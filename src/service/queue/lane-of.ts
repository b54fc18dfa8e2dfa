import { getDomain } from 'tldts';
import { hostOf } from '../../domain/target-url.ts';

/**
 * The name of the lane in which a URL waits: its host, or with `byDomain` its registrable domain by the
 * public suffix list. An address and a name without a known suffix are their own domain.
 */
export function laneOf(url: string, byDomain: boolean): string {
  if (!byDomain) return hostOf(url);
  const hostname = URL.parse(url)?.hostname ?? '';
  return getDomain(hostname) ?? hostname;
}
