import type { AddressGuard } from './address-guard.ts';
import { parseAddress } from './ip-address.ts';
import { proxyPort } from './proxy-tunnel.ts';
import { bareHostname, effectivePort } from './url-parts.ts';

/**
 * Why an http or https URL can never be called, whatever DNS says: its host is `localhost` or an
 * address that the guard refuses, or its port is not usable. Undefined when it may be callable.
 */
export function uncallableReason(text: string, guard: AddressGuard): string | undefined {
  const url = URL.parse(text);
  if (url === null) return 'is not a URL';
  if (!/^https?:$/.test(url.protocol)) return 'must be an http or https URL';
  return refusalReason(url, effectivePort(url), guard);
}

/** The same for the URL of a proxy: why it can never be connected to. */
export function unusableProxyReason(text: string, guard: AddressGuard): string | undefined {
  const url = URL.parse(text);
  return url === null ? 'is not a URL' : refusalReason(url, proxyPort(url), guard);
}

function refusalReason(url: URL, port: number, guard: AddressGuard): string | undefined {
  if (port === 0) return 'names port 0, which nothing listens on';
  const hostname = bareHostname(url).replace(/\.$/, '');
  // RFC 6761, 6.3: these names stand for the loopback addresses.
  const isLocalhost = hostname === 'localhost' || hostname.endsWith('.localhost');
  const addresses = isLocalhost ? ['127.0.0.1', '::1'] : [hostname];
  if (!isLocalhost && parseAddress(hostname) === undefined) return undefined;
  const refusals = addresses.map((address) => guard.refusal({ hostname, address, port }));
  if (refusals.includes(undefined)) return undefined;
  if (refusals.includes('port_not_allowed')) return `names port ${port}, which is not one of HTTP`;
  return `names ${hostname}, which is not a public address; the operator can allow it by NETWORK_ALLOW`;
}
