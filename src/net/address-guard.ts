import ipaddr from 'ipaddr.js';
import { BAD_PORTS } from './bad-ports.ts';
import { type IpAddress, isInBlock, parseAddress, parseBlock } from './ip-address.ts';
import type { NetworkAllow } from './network-allow.ts';
import { DENY_NOTHING, type NetworkDeny } from './network-deny.ts';
import { createOwnAddresses } from './own-addresses.ts';
import {
  EMBEDDED_IPV4,
  GLOBAL_IPV6,
  ISATAP_MARKS,
  NOT_PUBLIC_IPV4,
  NOT_PUBLIC_IPV6,
} from './special-addresses.ts';

/** Where a connection is to go. */
export interface Destination {
  /** A name in lower case, or an address without brackets, as the caller wrote it. */
  readonly hostname: string;
  /** An address that `hostname` resolves to. */
  readonly address: string;
  readonly port: number;
}

/** Why a connection is refused. */
export type AddressRefusal = 'address_not_allowed' | 'port_not_allowed';

/** Decides on every connection before it is made. */
export interface AddressGuard {
  /** Why the guard refuses a destination; undefined when it permits it. */
  refusal(destination: Destination): AddressRefusal | undefined;
}

/** What a guard knows in addition to `NETWORK_ALLOW`. */
export interface AddressGuardOptions {
  /** Default nothing. */
  readonly deny?: NetworkDeny | undefined;
  /** Addresses of this machine; default: those of its interfaces. */
  readonly ownAddresses?: () => readonly string[];
}

const notPublicIpv4 = NOT_PUBLIC_IPV4.map(parseBlock);
const notPublicIpv6 = NOT_PUBLIC_IPV6.map(parseBlock);
const globalIpv6 = parseBlock(GLOBAL_IPV6);
const embedding = EMBEDDED_IPV4.map(({ block, at }) => ({ block: parseBlock(block), at }));

/**
 * Whether an address belongs to the public Internet. IPv6 addresses that contain an IPv4 address
 * (mapped, NAT64, 6to4, ISATAP) are judged by that one. Text that is not an address is not public.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && isPublic(address);
}

function isPublic(address: IpAddress): boolean {
  if (address.kind() === 'ipv4') return !notPublicIpv4.some((block) => isInBlock(address, block));
  const embedded = embeddedIpv4(address);
  if (embedded?.decides === true) return isPublic(embedded.address);
  return (
    isInBlock(address, globalIpv6) &&
    !notPublicIpv6.some((block) => isInBlock(address, block)) &&
    (embedded === undefined || isPublic(embedded.address))
  );
}

/** The IPv4 address inside an IPv6 one. `decides` when it alone determines where packets go. */
function embeddedIpv4(
  address: IpAddress,
): { readonly address: IpAddress; readonly decides: boolean } | undefined {
  if (address.kind() === 'ipv4') return undefined;
  const bytes = address.toByteArray();
  const form = embedding.find(({ block }) => isInBlock(address, block));
  if (form !== undefined) {
    return { address: new ipaddr.IPv4(bytes.slice(form.at, form.at + 4)), decides: true };
  }
  const isIsatap = ISATAP_MARKS.includes(Buffer.from(bytes.slice(8, 12)).toString('hex'));
  return isIsatap ? { address: new ipaddr.IPv4(bytes.slice(12)), decides: false } : undefined;
}

/**
 * Makes the guard. Its rules apply in this order. What the operator denied is refused, in every
 * spelling. A `host:port` that the operator allowed is permitted. Ports of other protocols are
 * refused. Allowed blocks, and public addresses that do not belong to this machine, are permitted.
 */
export function createAddressGuard(
  allow: NetworkAllow,
  { deny = DENY_NOTHING, ownAddresses = createOwnAddresses() }: AddressGuardOptions = {},
): AddressGuard {
  const allowed = allow.blocks.map(parseBlock);
  const denied = deny.blocks.map(parseBlock);

  function isNamed(hosts: ReadonlySet<string>, hostname: string, forms: IpAddress[], port: number) {
    return (
      hosts.has(`${hostname}:${port}`) ||
      forms.some((address) => hosts.has(`${address.toString()}:${port}`))
    );
  }

  function isDenied(hostname: string, forms: IpAddress[], port: number): boolean {
    return (
      forms.some((address) => denied.some((block) => isInBlock(address, block))) ||
      isNamed(deny.hosts, hostname, forms, port) ||
      (deny.names.size > 0 && includesDomain(deny.names, hostname))
    );
  }

  function isOwn(forms: IpAddress[]): boolean {
    const spellings = forms.map((address) => address.toString());
    return ownAddresses().some((own) => spellings.includes(parseAddress(own)?.toString() ?? ''));
  }

  function refusal({ hostname, address, port }: Destination): AddressRefusal | undefined {
    const parsed = parseAddress(address);
    if (parsed === undefined) return 'address_not_allowed';
    const name = hostname.toLowerCase().replace(/\.$/, '');
    const embedded = embeddedIpv4(parsed);
    const forms = embedded === undefined ? [parsed] : [parsed, embedded.address];
    if (isDenied(name, forms, port)) return 'address_not_allowed';
    if (isNamed(allow.hosts, hostname.toLowerCase(), [parsed], port)) return undefined;
    const isAllowed = allowed.some((block) => isInBlock(parsed, block));
    if (!isAllowed && (!isPublic(parsed) || isOwn(forms))) return 'address_not_allowed';
    return BAD_PORTS.has(port) ? 'port_not_allowed' : undefined;
  }

  return { refusal };
}

/** Whether the set contains the name or one of its parent domains. */
function includesDomain(names: ReadonlySet<string>, hostname: string): boolean {
  for (let name = hostname; name !== ''; name = name.slice(name.indexOf('.') + 1)) {
    if (names.has(name)) return true;
    if (!name.includes('.')) return false;
  }
  return false;
}
