import ipaddr from 'ipaddr.js';
import { parseAddress } from './ip-address.ts';

/**
 * What may be reached although it is not public. Plain values, so that it can be sent to a thread.
 */
export interface NetworkAllow {
  /** CIDRs. */
  readonly blocks: readonly string[];
  /**
   * `host:port`; the host a name in lower case, or an address in its canonical spelling, IPv6
   * without brackets.
   */
  readonly hosts: ReadonlySet<string>;
}

/**
 * Reads `NETWORK_ALLOW`: CIDRs (`10.1.0.0/16`), addresses (`10.1.2.3`, `fd00::1`) and `host:port`
 * (`db.internal:8080`, `127.0.0.1:3000`, `[::1]:3000`), separated by commas. A name allows any
 * address that it resolves to, at that port. Throws an Error that quotes an entry that has another
 * form or is ambiguous.
 */
export function parseNetworkAllow(text: string): NetworkAllow {
  const blocks: string[] = [];
  const hosts = new Set<string>();
  for (const part of text.split(',')) {
    const entry = part.trim();
    if (entry === '') continue;
    const block = parseCidr(entry);
    if (block === undefined) hosts.add(toHostAndPort(entry));
    else blocks.push(block);
  }
  return { blocks, hosts };
}

/** What the entry of a list may be, with an example, for the error of one that is not. */
export const ENTRY = {
  cidr: 'a CIDR (10.0.0.0/8)',
  address: 'an address (10.1.2.3)',
  name: 'a name (internal.example)',
  hostAndPort: 'a host with its port (db.internal:8080, [::1]:8080)',
} as const;

const ALLOWED = [ENTRY.cidr, ENTRY.address, ENTRY.hostAndPort];

/**
 * The CIDR of an entry that is a CIDR or an address; undefined for any other. `kinds` is what the
 * list takes, for errors.
 */
export function parseCidr(entry: string, kinds: readonly string[] = ALLOWED): string | undefined {
  const [network = '', prefix, ...more] = entry.split('/');
  const address = parseAddress(network);
  const bits = address?.kind() === 'ipv4' ? 32 : 128;
  if (prefix === undefined) {
    if (address === undefined) return undefined;
    const [, host = '', port] = /^(.*):(\d{1,5})$/.exec(network) ?? [];
    if (parseAddress(host) !== undefined) {
      throw new Error(
        `"${entry}" may be an address or ${host} with port ${port}: write [${host}]:${port} or ${entry}/128`,
      );
    }
    return `${address.toString()}/${bits}`;
  }
  if (
    address === undefined ||
    more.length > 0 ||
    !/^\d{1,3}$/.test(prefix) ||
    Number(prefix) > bits
  ) {
    throw refuseEntry(entry, kinds);
  }
  const length = Number(prefix);
  const kind = address.kind() === 'ipv4' ? ipaddr.IPv4 : ipaddr.IPv6;
  const first = kind.networkAddressFromCIDR(`${address.toString()}/${length}`);
  if (first.toString() !== address.toString()) {
    throw new Error(
      `"${entry}" is an address within ${first.toString()}/${length}: write that, or ${address.toString()}`,
    );
  }
  return `${address.toString()}/${length}`;
}

/** The normal form of `host:port`; throws for others. */
export function toHostAndPort(entry: string, kinds: readonly string[] = ALLOWED): string {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(entry);
  const [, ipv6, name, digits] = match ?? [];
  const port = Number(digits);
  if (match === null || port < 1 || port > 65_535) throw refuseEntry(entry, kinds);
  if (ipv6 !== undefined) {
    const address = parseAddress(ipv6);
    if (address === undefined) throw refuseEntry(entry, kinds);
    return `${address.toString()}:${port}`;
  }
  return `${toHostname(name ?? '', kinds, entry)}:${port}`;
}

/**
 * A name as URLs spell it: international names become ASCII, addresses get their dotted form.
 * Throws an Error for anything else.
 */
export function toHostname(name: string, kinds: readonly string[], entry = name): string {
  const url = /^[\p{L}\p{M}\p{N}._-]+$/u.test(name) ? URL.parse(`http://${name}/`) : null;
  if (url === null) {
    throw name.includes('*')
      ? new Error(`"${entry}" has a wildcard, which means nothing here`)
      : refuseEntry(entry, kinds);
  }
  return url.hostname;
}

/** The error of an entry that is not of these kinds. */
export function refuseEntry(entry: string, kinds: readonly string[]): Error {
  const [last = '', ...others] = kinds.toReversed();
  const all = others.length === 0 ? last : `${others.toReversed().join(', ')} or ${last}`;
  const separated = /[\s;|]/.test(entry) ? '; separate entries by commas' : '';
  return new Error(`"${entry}" is not ${all}${separated}`);
}
