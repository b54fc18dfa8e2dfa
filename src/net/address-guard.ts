import ipaddr from 'ipaddr.js';
import type { NetworkAllow } from './network-allow.ts';
import {
  EMBEDDED_IPV4,
  GLOBAL_IPV6,
  NOT_PUBLIC_IPV4,
  NOT_PUBLIC_IPV6,
} from './special-addresses.ts';

/** A parsed address. */
export type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
/** A parsed block of addresses. */
export type IpBlock = readonly [network: IpAddress, prefixLength: number];

/** Where a connection is to go. */
export interface Destination {
  /** As the caller wrote it, in lower case: a name, or an address without brackets. */
  readonly hostname: string;
  /** An address `hostname` stands for. */
  readonly address: string;
  readonly port: number;
}

/** Decides on every connection before it is made. */
export interface AddressGuard {
  permits(destination: Destination): boolean;
}

const notPublicIpv4 = NOT_PUBLIC_IPV4.map(parseBlock);
const notPublicIpv6 = NOT_PUBLIC_IPV6.map(parseBlock);
const globalIpv6 = parseBlock(GLOBAL_IPV6);
const embedding = EMBEDDED_IPV4.map(({ block, at }) => ({ block: parseBlock(block), at }));

/**
 * The address in its plainest form: an IPv4-mapped one becomes IPv4. Undefined for anything that is not exactly one dotted IPv4 or one
 * IPv6 address, and for one with a zone, which only means something on a local link.
 */
export function parseAddress(text: string): IpAddress | undefined {
  if (text.includes('%')) return undefined;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  // ipaddr.js would take the long-withdrawn `::1.2.3.4` for a mapped address.
  if (/^::\d+\./.test(text) || !text.includes(':') || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** A block such as `10.0.0.0/8`. Throws when it is none. */
export function parseBlock(text: string): IpBlock {
  return ipaddr.parseCIDR(text);
}

/** Whether the block holds the address; blocks of the other family hold none. */
export function isInBlock(address: IpAddress, [network, prefixLength]: IpBlock): boolean {
  return address.kind() === network.kind() && address.match(network, prefixLength);
}

/**
 * Whether an address belongs to the public Internet. Forms of IPv6 that carry an IPv4 address (mapped, NAT64, 6to4) are judged by that
 * one. Text that is no address is not public.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && isPublic(address);
}

function isPublic(address: IpAddress): boolean {
  if (address.kind() === 'ipv4') return !notPublicIpv4.some((block) => isInBlock(address, block));
  const form = embedding.find(({ block }) => isInBlock(address, block));
  if (form !== undefined) {
    return isPublic(new ipaddr.IPv4(address.toByteArray().slice(form.at, form.at + 4)));
  }
  return (
    isInBlock(address, globalIpv6) && !notPublicIpv6.some((block) => isInBlock(address, block))
  );
}

/** Makes the guard: public addresses pass, and what the operator allowed. */
export function createAddressGuard(allow: NetworkAllow): AddressGuard {
  return {
    permits({ hostname, address, port }) {
      const parsed = parseAddress(address);
      if (parsed === undefined) return false;
      return (
        isPublic(parsed) ||
        allow.blocks.some((block) => isInBlock(parsed, block)) ||
        allow.hosts.has(`${hostname.toLowerCase()}:${port}`) ||
        allow.hosts.has(`${parsed.toString()}:${port}`)
      );
    },
  };
}
