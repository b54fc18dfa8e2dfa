import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { AnyRequest } from '../http/node-http.ts';

/** Finds the addresses of clients that connect through proxies of the operator. */
export interface ClientAddresses {
  /** Whether the peer of a connection is one of the proxies. */
  isTrusted(remote: string): boolean;
  /** Notes the client of a connection, as its proxy has said by the PROXY protocol. */
  note(socket: Socket, client: string): void;
  /**
   * The client's address. Of a connection from a proxy it is the last address of `Forwarded` or
   * `X-Forwarded-For` that is not a proxy's; both are ignored from others. Where they differ it is
   * the proxy's: a proxy that writes one of them passes on the other as the client has sent it.
   */
  of(request: AnyRequest): string;
}

/** Addresses in one header that are looked at: more are written by nobody who means it. */
const MAX_HOPS = 32;

/** Makes it for proxies in these CIDRs. */
export function createClientAddresses(trusted: readonly string[]): ClientAddresses {
  const ranges = trusted.map((cidr) => ipaddr.parseCIDR(cidr));
  /** By address and port of the peer: a TLS connection is another object than the one below it. */
  const noted = new Map<string, string>();

  function isTrusted(remote: string): boolean {
    const address = parseAddress(remote);
    if (address === undefined) return false;
    return ranges.some(
      ([base, bits]) => base.kind() === address.kind() && address.match(base, bits),
    );
  }

  function lastOf(hops: readonly string[], peer: string): string {
    let remote = peer;
    for (const hop of hops.slice(-MAX_HOPS).toReversed()) {
      const address = parseAddress(hop);
      // What is before it was not written by a proxy of the operator.
      if (address === undefined) return remote;
      remote = address.toString();
      if (!isTrusted(remote)) return remote;
    }
    return remote;
  }

  return {
    isTrusted,
    note(socket, client) {
      const key = keyOf(socket);
      noted.set(key, client);
      socket.once('close', () => noted.delete(key));
    },
    of({ socket, headers }) {
      const peer = (noted.size > 0 && noted.get(keyOf(socket))) || withoutMapping(socket);
      if (ranges.length === 0 || !isTrusted(peer)) return peer;
      const told = [forwarded(headers), xForwardedFor(headers)]
        .filter((hops) => hops.length > 0)
        .map((hops) => lastOf(hops, peer));
      const [client = peer] = told;
      return told.every((each) => each === client) ? client : peer;
    },
  };
}

function keyOf(socket: Pick<Socket, 'remoteAddress' | 'remotePort'> | undefined): string {
  return `${socket?.remoteAddress} ${socket?.remotePort}`;
}

/** The address of a peer. On a port of IPv6, one of IPv4 is written as `::ffff:203.0.113.7`. */
function withoutMapping(socket: Pick<Socket, 'remoteAddress'> | undefined): string {
  return (socket?.remoteAddress ?? '').replace(/^::ffff:(?=[\d.]+$)/i, '');
}

/** An address without its zone; one of IPv4 that is written in IPv6 is of IPv4. */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  const [address = ''] = text.split('%', 1);
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

function xForwardedFor(headers: AnyRequest['headers']): string[] {
  const text = String(headers['x-forwarded-for'] ?? '');
  return text === '' ? [] : text.split(',').map(withoutPort);
}

/** The `for` of each hop (RFC 7239); an empty text for one that has none. */
function forwarded(headers: AnyRequest['headers']): string[] {
  const text = headers.forwarded ?? '';
  if (text === '') return [];
  return text
    .split(',')
    .map((hop) => withoutPort(/(?:^|;)\s*for="?([^";,\s]*)"?\s*(?:;|$)/i.exec(hop)?.[1] ?? ''));
}

/** The address of `address`, `address:port`, `[address]` or `[address]:port`. */
function withoutPort(text: string): string {
  const trimmed = text.trim();
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(trimmed)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^([\d.]+):\d+$/.exec(trimmed)?.[1] ?? trimmed;
}
