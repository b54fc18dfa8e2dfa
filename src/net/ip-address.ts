import ipaddr from 'ipaddr.js';

/** A parsed address. */
export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** A parsed block of addresses. */
export type IpBlock = readonly [network: IpAddress, prefixLength: number];

/**
 * Parses an address; an IPv4-mapped one becomes IPv4. Undefined for anything that is not exactly
 * one dotted IPv4 or one IPv6 address, and for an address with a zone, which is valid only on a
 * local link.
 */
export function parseAddress(text: string): IpAddress | undefined {
  if (text.includes('%')) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  // ipaddr.js would take the deprecated form `::1.2.3.4` for a mapped address.
  if (/^::\d+\./.test(text) || !text.includes(':') || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** Parses a block such as `10.0.0.0/8`. Throws an Error for anything else. */
export function parseBlock(text: string): IpBlock {
  return ipaddr.parseCIDR(text);
}

/** Whether the block contains the address; a block of the other family never does. */
export function isInBlock(address: IpAddress, [network, prefixLength]: IpBlock): boolean {
  return address.kind() === network.kind() && address.match(network, prefixLength);
}
