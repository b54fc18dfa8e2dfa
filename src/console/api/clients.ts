import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { createServiceClients } from '../../client/create-service-clients.ts';
import type { ServiceClients } from '../../client/service-clients.ts';
import { session, type TokenKind } from './session.ts';

const made = new Map<string, ServiceClients>();

/** The clients that address crawlers of this type. Throws when the session lacks the token. */
export function clientsFor(type: TokenType): ServiceClients {
  const kind = type === TokenType.JAVASCRIPT ? 'javascript' : 'normal';
  if (session.value?.tokens.includes(kind) !== true) {
    throw new Error('The session has no token of this type.');
  }
  return clientsOf(kind);
}

/** The clients for what either token may ask. */
export function accountClients(): ServiceClients {
  return clientsOf(session.value?.tokens.includes('normal') === true ? 'normal' : 'javascript');
}

/** The clients of the operator. */
export function operatorClients(): ServiceClients {
  return clientsOf('admin');
}

/**
 * The clients whose calls the service makes with this token of the session. Those of an account are
 * refused once another account has signed in.
 */
function clientsOf(kind: TokenKind): ServiceClients {
  const account = session.value?.account ?? '';
  const key = `${kind} ${account}`;
  let clients = made.get(key);
  if (clients === undefined) {
    const withToken: Interceptor = (next) => (request) => {
      request.header.set('x-console-token', kind);
      if (kind !== 'admin') request.header.set('x-console-account', account);
      return next(request);
    };
    clients = createServiceClients(
      createConnectTransport({
        baseUrl: location.origin,
        useBinaryFormat: true,
        interceptors: [withToken],
      }),
    );
    made.set(key, clients);
  }
  return clients;
}
