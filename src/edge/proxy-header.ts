import type { Socket } from 'node:net';
import ipaddr from 'ipaddr.js';

// The PROXY protocol: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt

const V1 = Buffer.from('PROXY ');
const V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
/** The longest header of version 1, with its line break. */
const MAX_V1_BYTES = 107;
/** Bytes before the addresses of version 2. */
const V2_HEAD_BYTES = 16;
/** Addresses and additional fields of version 2 together. */
const MAX_V2_BYTES = 4_096;

/** What the first bytes of a connection are. */
export type ProxyHeader =
  /** Too few to tell. */
  | { readonly kind: 'incomplete' }
  /** No header: the client's own bytes. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'malformed' }
  /** `client` is undefined for a connection that the proxy makes for itself. */
  | { readonly kind: 'header'; readonly bytes: number; readonly client: string | undefined };

/** Reads the header at the start of `seen`. */
export function parseProxyHeader(seen: Buffer): ProxyHeader {
  if (startsWith(seen, V2)) return seen.length < V2_HEAD_BYTES ? INCOMPLETE : parseV2(seen);
  return startsWith(seen, V1) ? parseV1(seen) : { kind: 'absent' };
}

const INCOMPLETE = { kind: 'incomplete' } as const;
const MALFORMED = { kind: 'malformed' } as const;

/** Whether the bytes agree with the mark, as far as they go. */
function startsWith(seen: Buffer, mark: Buffer): boolean {
  const length = Math.min(seen.length, mark.length);
  return seen.compare(mark, 0, length, 0, length) === 0;
}

function parseV1(seen: Buffer): ProxyHeader {
  const end = seen.subarray(0, MAX_V1_BYTES).indexOf('\r\n');
  if (end === -1) return seen.length < MAX_V1_BYTES ? INCOMPLETE : MALFORMED;
  const [, family, client = ''] = seen.toString('latin1', 0, end).split(' ');
  const bytes = end + 2;
  if (family === 'UNKNOWN') return { kind: 'header', bytes, client: undefined };
  const isValid = family === 'TCP4' ? ipaddr.IPv4.isValidFourPartDecimal(client) : isV6(client);
  if ((family !== 'TCP4' && family !== 'TCP6') || !isValid) return MALFORMED;
  return { kind: 'header', bytes, client };
}

const isV6 = (text: string): boolean => text.includes(':') && ipaddr.IPv6.isValid(text);

function parseV2(seen: Buffer): ProxyHeader {
  const command = seen[12] ?? 0;
  const family = (seen[13] ?? 0) >> 4;
  const length = seen.readUInt16BE(14);
  if (command >> 4 !== 2 || (command & 0xf) > 1 || length > MAX_V2_BYTES) return MALFORMED;
  const bytes = V2_HEAD_BYTES + length;
  if (seen.length < bytes) return INCOMPLETE;
  const isLocal = (command & 0xf) === 0;
  const size = family === 1 ? 4 : family === 2 ? 16 : 0;
  if (isLocal || size === 0) return { kind: 'header', bytes, client: undefined };
  if (length < size) return MALFORMED;
  const address = [...seen.subarray(V2_HEAD_BYTES, V2_HEAD_BYTES + size)];
  return { kind: 'header', bytes, client: ipaddr.fromByteArray(address).toString() };
}

/**
 * Reads the header of a connection from a proxy, and then calls `accept`, with all bytes behind it
 * unread. Destroys a connection whose header is malformed or does not come in time.
 */
export function readProxyHeader(
  socket: Socket,
  timeoutMs: number,
  accept: (client: string | undefined) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs).unref();
  const end = (): void => void socket.destroy();
  function leave(): void {
    clearTimeout(timer);
    socket.off('data', inspect);
    socket.off('end', end);
    socket.off('close', leave);
  }
  function inspect(chunk: Buffer): void {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const header = parseProxyHeader(seen);
    if (header.kind === 'incomplete') return;
    leave();
    if (header.kind === 'malformed') return end();
    // While it is paused, the bytes stay in the socket until its new owner listens.
    socket.pause();
    const rest = seen.subarray(header.kind === 'header' ? header.bytes : 0);
    if (rest.length > 0) socket.unshift(rest);
    accept(header.kind === 'header' ? header.client : undefined);
  }
  socket.on('data', inspect);
  socket.on('end', end);
  socket.on('close', leave);
}
