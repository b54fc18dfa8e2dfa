import { getDomain } from 'tldts';

/**
 * The name of the lane in which URLs of a host wait: the host with its port, or with `byDomain` its
 * registrable domain by the public suffix list. An address and a name without a known suffix are their
 * own domain.
 */
export function laneOf(host: string, byDomain: boolean): string {
  if (!byDomain) return host;
  const hostname = host.replace(/:\d+$/, '');
  return getDomain(hostname) ?? hostname;
}
