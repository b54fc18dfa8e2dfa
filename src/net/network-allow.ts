import { type IpBlock, parseAddress, parseBlock } from './address-guard.ts';

/** What may be reached though it is not public. */
export interface NetworkAllow {
  /** As it was given. */
  readonly text: string;
  readonly blocks: readonly IpBlock[];
  /** `host:port`; the host a name in lower case, or an address in its canonical spelling, IPv6 without brackets. */
  readonly hosts: ReadonlySet<string>;
}

/** Allows nothing beyond the public Internet. */
export const PUBLIC_ONLY: NetworkAllow = { text: '', blocks: [], hosts: new Set() };

/**
 * Reads `NETWORK_ALLOW`: CIDRs (`10.1.0.0/16`), addresses (`10.1.2.3`, `fd00::1`) and `host:port` (`db.internal:8080`, `127.0.0.1:3000`,
 * `[::1]:3000`), separated by commas. A name allows whatever address it stands for, at that port. Throws an Error that names the
 * entry which is none of these.
 */
export function parseNetworkAllow(text: string): NetworkAllow {
  const blocks: IpBlock[] = [];
  const hosts = new Set<string>();
  for (const part of text.split(',')) {
    const entry = part.trim();
    if (entry === '') continue;
    const block = blockOf(entry);
    if (block === undefined) hosts.add(hostAndPortOf(entry));
    else blocks.push(block);
  }
  return { text, blocks, hosts };
}

function blockOf(entry: string): IpBlock | undefined {
  const [network = '', prefix, ...more] = entry.split('/');
  if (prefix === undefined) {
    const address = parseAddress(network);
    return address && [address, address.kind() === 'ipv4' ? 32 : 128];
  }
  const address = parseAddress(network);
  const most = address?.kind() === 'ipv4' ? 32 : 128;
  if (
    address === undefined ||
    more.length > 0 ||
    !/^\d{1,3}$/.test(prefix) ||
    Number(prefix) > most
  ) {
    throw refuse(entry);
  }
  return parseBlock(`${address.toString()}/${Number(prefix)}`);
}

function hostAndPortOf(entry: string): string {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/@?#]+)):(\d{1,5})$/.exec(entry);
  const [, ipv6, name, digits] = match ?? [];
  const port = Number(digits);
  if (match === null || port < 1 || port > 65_535) throw refuse(entry);
  if (ipv6 !== undefined) {
    const address = parseAddress(ipv6);
    if (address === undefined) throw refuse(entry);
    return `${address.toString()}:${port}`;
  }
  // As a URL will spell it: international names become ASCII, addresses their dotted form.
  const url = URL.parse(`http://${name}:${port}/`);
  if (url === null) throw refuse(entry);
  return `${url.hostname}:${port}`;
}

function refuse(entry: string): Error {
  return new Error(
    `"${entry}" is none of a CIDR (10.0.0.0/8), an address (10.1.2.3) and a host with its port (db.internal:8080, [::1]:8080)`,
  );
}
