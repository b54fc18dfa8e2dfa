import type { Socket } from 'node:net';
import { Socks5Client } from 'undici/lib/core/socks5-client.js';
import { errorCode, httpError } from './http-failures.ts';
import { decodeUserInfo } from './url-parts.ts';

/**
 * Asks a SOCKS5 proxy (RFC 1928, 1929) to connect to the host. Rejects with `proxy_refused` when it
 * answers that it does not, or ends the connection once it was asked to. Rejects with `proxy_failed`
 * before that, and when it speaks another protocol. The socket is paused then.
 */
export async function askSocks(
  socket: Socket,
  { username, password }: Pick<URL, 'username' | 'password'>,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const client = new Socks5Client(socket, {
    username: decodeUserInfo(username),
    password: decodeUserInfo(password),
  });
  let isAsked = false;
  // An error that comes after the answer is the connection's own.
  client.on('error', reject);
  client.on('close', () => reject(httpError('connection_failed')));
  client.on('authenticated', () => {
    isAsked = true;
    client.connect(host, port);
  });
  client.on('connected', () => {
    socket.pause();
    resolve();
  });
  client.handshake();
  try {
    await promise;
  } catch (error) {
    const isVersion = errorCode(error) === 'UND_ERR_SOCKS5_REPLY_VERSION';
    throw httpError(isAsked && !isVersion ? 'proxy_refused' : 'proxy_failed', error);
  }
}
