/**
 * IPv4 blocks that do not belong to the public Internet: IANA's special-purpose registry (RFC 6890
 * and its successors) and multicast. Also public-looking addresses at which clouds serve the
 * credentials of their machines. https://www.iana.org/assignments/iana-ipv4-special-registry
 */
export const NOT_PUBLIC_IPV4: readonly string[] = [
  '0.0.0.0/8', // this network; 0.0.0.0 reaches the own machine
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT, and one cloud's metadata
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure's machine services
  '169.254.0.0/16', // link-local, and most clouds' metadata
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments, and one cloud's metadata
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, withdrawn
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
];

/**
 * The only IPv6 block of global unicast addresses. Everything else (loopback, ULA, link-local,
 * multicast) is outside it.
 */
export const GLOBAL_IPV6 = '2000::/3';

/**
 * Blocks inside the global one that do not belong to the public Internet.
 * https://www.iana.org/assignments/iana-ipv6-special-registry
 */
export const NOT_PUBLIC_IPV6: readonly string[] = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '3ffe::/16', // 6bone, given back
  '3fff::/20', // documentation
];

/**
 * Bytes 8 to 11 of an ISATAP address (RFC 5214). The last four are the IPv4 address that packets
 * are delivered to, whatever the network.
 */
export const ISATAP_MARKS: readonly string[] = ['00005efe', '02005efe'];

/** Blocks whose addresses stand for an IPv4 address; `at` is the position of its first byte. */
export const EMBEDDED_IPV4: readonly { readonly block: string; readonly at: number }[] = [
  { block: '::ffff:0:0/96', at: 12 }, // IPv4-mapped
  { block: '64:ff9b::/96', at: 12 }, // NAT64; the local one, 64:ff9b:1::/48, is private to a network
  { block: '2002::/16', at: 2 }, // 6to4
];
