/**
 * The part of an address that identifies a sender: an IPv4 address, or the 64 bits of IPv6 that one
 * subscriber has.
 */
export function addressPrefix(remote: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remote)?.[1];
  if (mapped !== undefined) return mapped;
  if (!remote.includes(':')) return remote;
  const [head = '', tail] = (remote.split('%', 1)[0] ?? '').split('::');
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - rest.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => '0'), ...rest];
  return `${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
