import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIP } from 'node:net';

/**
 * What a name server says about a name: its addresses, nothing, or that the name does not exist.
 */
export type DnsRule =
  | readonly string[]
  | 'silent'
  | 'nxdomain'
  | 'servfail'
  /** Answers questions for IPv4 and never those for IPv6. */
  | { readonly onlyIpv4: readonly string[] }
  /** The addresses for the `nth` question of that type, from 1. */
  | ((nth: number) => readonly string[]);

/** A name server on 127.0.0.1. */
export interface DnsServer extends AsyncDisposable {
  /** `127.0.0.1:PORT`, for `DNS_SERVERS`. */
  readonly address: string;
  /** Names asked for, oldest first, one for each question, as `A name` or `AAAA name`. */
  readonly asked: readonly string[];
}

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' };

/**
 * Starts one that knows `names`; `*.dead.test` is every name below `dead.test`. Names that are not listed do not exist. Answers may be
 * kept for `ttl` seconds (default 0).
 */
export async function startDnsServer(
  names: Readonly<Record<string, DnsRule>>,
  { ttl = 0 }: { readonly ttl?: number } = {},
): Promise<DnsServer> {
  const asked: string[] = [];
  const socket = createSocket('udp4');

  function ruleOf(name: string): DnsRule {
    const wildcard = Object.keys(names).find(
      (each) => each.startsWith('*.') && name.endsWith(each.slice(1)),
    );
    return names[name] ?? names[wildcard ?? ''] ?? 'nxdomain';
  }

  socket.on('message', (message, from) => {
    const { name, type, end } = questionOf(message);
    const question = `${TYPES[type] ?? type} ${name}`;
    asked.push(question);
    const rule = ruleOf(name.toLowerCase());
    if (rule === 'silent' || (isHalf(rule) && type === 28)) return;
    const code = rule === 'nxdomain' ? 3 : rule === 'servfail' ? 2 : 0;
    const nth = asked.filter((each) => each === question).length;
    const addresses = addressesOf(rule, nth);
    const records = addresses
      .filter((address) => isIP(address) === (type === 28 ? 6 : 4))
      .map((address) => recordOf(address, type, ttl));
    const header = Buffer.alloc(12);
    message.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | code, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    socket.send(
      Buffer.concat([header, message.subarray(12, end), ...records]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function isHalf(rule: DnsRule): rule is { readonly onlyIpv4: readonly string[] } {
  return typeof rule === 'object' && 'onlyIpv4' in rule;
}

function addressesOf(rule: DnsRule, nth: number): readonly string[] {
  if (typeof rule === 'string') return [];
  if (typeof rule === 'function') return rule(nth);
  return isHalf(rule) ? rule.onlyIpv4 : rule;
}

function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function recordOf(address: string, type: number, ttl: number): Buffer {
  const data =
    type === 1
      ? Buffer.from(address.split('.').map(Number))
      : Buffer.from(
          address
            .replace('::', ':'.repeat(10 - address.split(':').length))
            .split(':')
            .map((group) => group.padStart(4, '0'))
            .join(''),
          'hex',
        );
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(type, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt32BE(ttl, 6);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([record, data]);
}
