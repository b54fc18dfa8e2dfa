import type { Socket } from 'node:net';
import { Socks5Client } from 'undici/lib/core/socks5-client.js';
import { errorCode, httpError } from './http-failures.ts';
import { decodeUserInfo } from './url-parts.ts';

/**
 * Asks a SOCKS5 proxy (RFC 1928, 1929) to connect to the host. Rejects with `proxy_refused` when it
 * answers that it does not, else with `proxy_failed`. The socket is paused then.
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
  // An error that comes after the answer is the connection's own.
  client.on('error', reject);
  client.on('close', () => reject(httpError('proxy_failed')));
  client.on('authenticated', () => client.connect(host, port));
  client.on('connected', () => {
    socket.pause();
    resolve();
  });
  client.handshake();
  try {
    await promise;
  } catch (error) {
    const refuses = errorCode(error).startsWith('UND_ERR_SOCKS5_REPLY_');
    const isVersion = errorCode(error) === 'UND_ERR_SOCKS5_REPLY_VERSION';
    throw httpError(refuses && !isVersion ? 'proxy_refused' : 'proxy_failed', error);
  }
}
