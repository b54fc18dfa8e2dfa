import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { createRetries } from './retries.ts';
import type { RetryOptions } from './retry-options.ts';

/** A dead connection is noticed after two of these times. */
const PING_MS = 20_000;

/**
 * MB. Node never takes off what a refused call had not sent yet, and fails every call of the connection above
 * the limit, 10 by default.
 */
const MAX_SESSION_MEMORY = 2 ** 32 - 1;

/** The connections of one client. */
export interface Connection {
  readonly transport: Transport;
  close(): void;
}

/** What a connection is made of; see CrawlerClientOptions. */
export interface ConnectionOptions {
  readonly baseUrl: string;
  readonly token: string;
  readonly httpVersion?: '1.1' | '2';
  readonly ca?: string | Buffer;
  readonly retries?: RetryOptions;
}

/** Makes the transport, which connects with the first call. */
export function openConnection(options: ConnectionOptions): Connection {
  const { ca, token, httpVersion = '2' } = options;
  const baseUrl = options.baseUrl.replace(/\/+$/, '');
  const tls = ca === undefined ? {} : { ca };
  const authorize: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const shared = { baseUrl, interceptors: [createRetries(options.retries), authorize] };
  if (httpVersion === '2') {
    const sessionManager = new Http2SessionManager(
      baseUrl,
      { pingIntervalMs: PING_MS },
      { ...tls, maxSessionMemory: MAX_SESSION_MEMORY },
    );
    ignoreLateErrors(sessionManager);
    return {
      transport: createConnectTransport({ ...shared, httpVersion, sessionManager }),
      close: () => sessionManager.abort(),
    };
  }
  const agent = baseUrl.startsWith('https:')
    ? new HttpsAgent({ ...tls, keepAlive: true })
    : new HttpAgent({ keepAlive: true });
  return {
    transport: createConnectTransport({ ...shared, httpVersion, nodeOptions: { agent } }),
    close: () => agent.destroy(),
  };
}

/**
 * A connection that fails fails its calls, which tell why. Its error can come once more after the
 * manager has stopped to listen, as from a server that does not speak HTTP/2, and would end the process.
 */
function ignoreLateErrors(manager: Http2SessionManager): void {
  const request = manager.request.bind(manager);
  const known = new WeakSet<object>();
  manager.request = async (...call) => {
    const stream = await request(...call);
    const { session } = stream;
    if (session !== undefined && !known.has(session)) {
      known.add(session);
      session.on('error', () => undefined);
    }
    return stream;
  };
}
