import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { withDeadline } from '../domain/deadline.ts';
import { defined } from '../domain/defined.ts';
import { GUARDED } from '../domain/proxy-pools.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard } from './address-guard.ts';
import { lookupOf, permittedLookup } from './guarded-connector.ts';
import { httpError, toHttpError } from './http-failures.ts';
import type { Lookup } from './lookup.ts';
import { askSocks } from './socks-tunnel.ts';
import { bareHostname, basicAuthorization, effectivePort } from './url-parts.ts';

/** A connection through a proxy. */
export interface TunnelRequest {
  /**
   * An http, https or socks5 URL, with credentials where the proxy needs them. With {@link GUARDED}
   * at its end, the proxy itself is judged by `guard`.
   */
  readonly proxyUrl: string;
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** On whose behalf. */
  readonly claimant?: Claimant | undefined;
  /** A name, or an address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Certificate authorities for an https proxy, PEM; Node's own when undefined. */
  readonly ca?: string | undefined;
  /** Called with each socket as soon as it exists. */
  readonly onSocket?: ((socket: Socket) => void) | undefined;
}

const CONNECT_TIMEOUT_MS = 20_000;
/** A proxy is near, or one of many. */
const PROXY_TIMEOUT_MS = 10_000;
const REPLY_BYTES = 16_384;

/**
 * Connects to the proxy and asks it to connect to the host. A proxy that the operator chose may have
 * a private address. Rejects with `no_socket`, and with `proxy_failed` when the proxy is not reached or may not be, refuses
 * the credentials or does not speak its protocol. Rejects with `proxy_refused` for whatever the host
 * can cause: the proxy does not connect to it, or ends the connection once it was asked to. The
 * socket is paused.
 */
export async function openTunnel(request: TunnelRequest): Promise<Socket> {
  const proxy = URL.parse(request.proxyUrl);
  if (proxy === null || !/^(https?|socks5):$/.test(proxy.protocol)) throw httpError('proxy_failed');
  const socket = await connectToProxy(proxy, request);
  try {
    const ask = proxy.protocol === 'socks5:' ? askSocks : askConnect;
    await withDeadline(ask(socket, proxy, request), PROXY_TIMEOUT_MS, () =>
      httpError('proxy_refused', httpError('timeout')),
    );
  } catch (error) {
    socket.destroy();
    throw error;
  }
  return socket;
}

/** Asks an HTTP proxy by CONNECT. */
async function askConnect(
  socket: Socket,
  proxy: URL,
  { host, port }: Pick<TunnelRequest, 'host' | 'port'>,
): Promise<void> {
  const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const authorization = basicAuthorization(proxy);
  const credentials =
    authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`);
  const { head, rest } = await readReply(socket);
  const [, status = ''] = /^HTTP\/1\.[01] (\d\d\d)/.exec(head) ?? [];
  if (!status.startsWith('2')) {
    const isOwn = status === '' || status === '407';
    throw httpError(isOwn ? 'proxy_failed' : 'proxy_refused', { code: status });
  }
  // A target of HTTP is silent until it is asked; this is another one, or the proxy itself.
  if (rest.length > 0) throw httpError('proxy_refused');
}

async function connectToProxy(proxy: URL, request: TunnelRequest): Promise<Socket> {
  const { ca, onSocket } = request;
  const isTls = proxy.protocol === 'https:';
  const [host, port] = [bareHostname(proxy), proxyPort(proxy)];
  try {
    const isName = isIP(host) === 0;
    const lookup =
      proxy.hash === GUARDED
        ? await permittedLookup({ ...request, port }, host, request)
        : // For no account: one that waits for its look-ups would fail the proxy for all.
          lookupOf(isName ? await request.lookup(host) : []);
    const to = { host, port, lookup };
    // RFC 6066, 3: a server name is no address.
    const servername = isName ? host : '';
    const socket = isTls ? connectTls({ ...to, servername, ...defined({ ca }) }) : connectTcp(to);
    onSocket?.(socket);
    return await untilConnected(socket, isTls ? 'secureConnect' : 'connect', PROXY_TIMEOUT_MS);
  } catch (error) {
    const isOwn = toHttpError(error).code === 'no_socket';
    throw httpError(isOwn ? 'no_socket' : 'proxy_failed', error);
  }
}

/** The port of a proxy, which SOCKS5 has a usual one for, too. */
export function proxyPort(proxy: URL): number {
  return proxy.protocol === 'socks5:' && proxy.port === '' ? SOCKS_PORT : effectivePort(proxy);
}

const SOCKS_PORT = 1_080;

/** Resolves once the socket is connected. Rejects, and destroys it, in time or when it fails. */
export function untilConnected<T extends Socket>(
  socket: T,
  event: 'connect' | 'secureConnect',
  timeoutMs = CONNECT_TIMEOUT_MS,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(httpError('connect_timeout')), timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const onClose = (): void => fail(httpError('connection_failed'));
    socket.once('error', fail).once('close', onClose);
    socket.once(event, () => {
      clearTimeout(timer);
      socket.off('error', fail).off('close', onClose);
      resolve(socket);
    });
  });
}

/** Begins a response that another one follows (RFC 9110, 15.2). */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)\d\d/;

/** Reads the head of a proxy's answer to CONNECT, after those of interim responses. */
async function readReply(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ head: string; rest: Buffer }>();
  let read = Buffer.alloc(0);
  /** Where the head begins in `read`. */
  let start = 0;
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk]);
    for (;;) {
      const end = read.indexOf('\r\n\r\n', start);
      if (end < 0) break;
      const head = read.toString('latin1', start, end);
      start = end + 4;
      if (!INTERIM.test(head)) return resolve({ head, rest: read.subarray(start) });
    }
    if (read.length > REPLY_BYTES) reject(httpError('proxy_failed'));
  };
  const onEnd = (error?: unknown): void => reject(httpError('proxy_refused', error));
  socket.on('data', onData).once('end', onEnd).once('error', onEnd).once('close', onEnd);
  try {
    return await promise;
  } finally {
    socket.pause();
    socket.off('data', onData).off('end', onEnd).off('error', onEnd).off('close', onEnd);
  }
}
