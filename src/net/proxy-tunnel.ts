import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { HttpError } from './http-client.ts';
import { httpError } from './http-failures.ts';
import { bareHostname, basicAuthorization, effectivePort } from './url-parts.ts';

/** A connection through a proxy of the operator. */
export interface TunnelRequest {
  /** An http or https URL, with credentials where the proxy needs them. */
  readonly proxyUrl: string;
  /** A name, or an address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** Certificate authorities for an https proxy, PEM; Node's own when undefined. */
  readonly ca?: string | undefined;
  /** Called with each socket as soon as it exists. */
  readonly onSocket?: ((socket: Socket) => void) | undefined;
}

const CONNECT_TIMEOUT_MS = 20_000;
const REPLY_BYTES = 16_384;

/**
 * Connects to the proxy and asks it to connect to the host (CONNECT). The proxy itself may have a
 * private address, because the operator chose it. Rejects with `proxy_failed` when it refuses. The
 * socket is paused, because bytes of the target may have arrived with the proxy's answer.
 */
export async function openTunnel(request: TunnelRequest): Promise<Socket> {
  const proxy = URL.parse(request.proxyUrl);
  if (proxy === null || !/^https?:$/.test(proxy.protocol)) throw httpError('proxy_failed');
  const socket = await connectToProxy(proxy, request);
  const { host, port } = request;
  const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const authorization = basicAuthorization(proxy);
  const credentials =
    authorization === undefined ? '' : `proxy-authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`);
  const { head, rest } = await readReply(socket);
  if (!/^HTTP\/1\.[01] 2\d\d/.test(head)) {
    socket.destroy();
    throw httpError('proxy_failed');
  }
  if (rest.length > 0) socket.unshift(rest);
  return socket;
}

async function connectToProxy(
  proxy: URL,
  { ca, onSocket }: Pick<TunnelRequest, 'ca' | 'onSocket'>,
): Promise<Socket> {
  const isTls = proxy.protocol === 'https:';
  const place = { host: bareHostname(proxy), port: effectivePort(proxy) };
  const socket = isTls
    ? connectTls({ ...place, servername: place.host, ...(ca === undefined ? {} : { ca }) })
    : connectTcp(place);
  onSocket?.(socket);
  try {
    return await untilConnected(socket, isTls ? 'secureConnect' : 'connect');
  } catch (error) {
    throw httpError('proxy_failed', error);
  }
}

/** Resolves once the socket is connected. Rejects, and destroys it, after 20 s or when it fails. */
export function untilConnected<T extends Socket>(
  socket: T,
  event: 'connect' | 'secureConnect',
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(httpError('connect_timeout')), CONNECT_TIMEOUT_MS);
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

/** Reads the head of a proxy's answer to CONNECT. */
async function readReply(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ head: string; rest: Buffer }>();
  let read = Buffer.alloc(0);
  const timer = setTimeout(
    () => reject(new HttpError('proxy_failed', 'no answer')),
    CONNECT_TIMEOUT_MS,
  );
  const onData = (chunk: Buffer): void => {
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf('\r\n\r\n');
    if (end >= 0)
      resolve({ head: read.subarray(0, end).toString('latin1'), rest: read.subarray(end + 4) });
    else if (read.length > REPLY_BYTES) reject(httpError('proxy_failed'));
  };
  const onEnd = (): void => reject(httpError('proxy_failed'));
  socket.on('data', onData).once('end', onEnd).once('error', onEnd).once('close', onEnd);
  try {
    return await promise;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
    socket.pause();
    socket.off('data', onData).off('end', onEnd).off('error', onEnd).off('close', onEnd);
  }
}
