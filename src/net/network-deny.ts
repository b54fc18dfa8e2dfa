import { ENTRY, parseCidr, toHostAndPort, toHostname } from './network-allow.ts';

/** What is never reached, even when something else allows it. Plain values. */
export interface NetworkDeny {
  /** CIDRs. */
  readonly blocks: readonly string[];
  /** `host:port`, as in {@link NetworkAllow}. */
  readonly hosts: ReadonlySet<string>;
  /** Names, each including its subdomains. */
  readonly names: ReadonlySet<string>;
}

const DENIED = [ENTRY.cidr, ENTRY.address, ENTRY.name, ENTRY.hostAndPort];

/** Denies nothing beyond what is not public. */
export const DENY_NOTHING: NetworkDeny = { blocks: [], hosts: new Set(), names: new Set() };

/**
 * Reads `NETWORK_DENY`: CIDRs, addresses, `host:port`, and names (`example.com`, which includes
 * `www.example.com`), separated by commas. Throws an Error that quotes an entry that has another
 * form.
 */
export function parseNetworkDeny(text: string): NetworkDeny {
  const blocks: string[] = [];
  const hosts = new Set<string>();
  const names = new Set<string>();
  for (const part of text.split(',')) {
    const entry = part.trim();
    if (entry === '') continue;
    const block = parseCidr(entry, DENIED);
    if (block !== undefined) blocks.push(block);
    else if (entry.includes(':')) hosts.add(toHostAndPort(entry, DENIED));
    else names.add(toHostname(entry, DENIED));
  }
  return { blocks, hosts, names };
}
