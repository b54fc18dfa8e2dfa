import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { effect } from '@preact/signals';
import { TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { createServiceClients } from '../../client/create-service-clients.ts';
import type { ServiceClients } from '../../client/service-clients.ts';
import { session } from './session.ts';

const byToken = new Map<string, ServiceClients>();
effect(() => {
  if (session.value === undefined) byToken.clear();
});

/** The clients of a token, which travels in a header only. */
export function clientsOf(token: string): ServiceClients {
  let clients = byToken.get(token);
  if (clients === undefined) {
    clients = makeClients(token);
    byToken.set(token, clients);
  }
  return clients;
}

/** The clients that address crawlers of this type. Throws when the session lacks the token. */
export function clientsFor(type: TokenType): ServiceClients {
  const { normal, javascript } = session.value ?? {};
  const token = type === TokenType.JAVASCRIPT ? javascript : normal;
  if (token === undefined) throw new Error('The session has no token of this type.');
  return clientsOf(token);
}

/** The clients for what either token may ask. */
export function accountClients(): ServiceClients {
  const { normal, javascript } = session.value ?? {};
  return clientsOf(normal ?? javascript ?? '');
}

/** The clients of the operator. */
export function operatorClients(): ServiceClients {
  return clientsOf(session.value?.admin ?? '');
}

function makeClients(token: string): ServiceClients {
  const withToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: location.origin,
    useBinaryFormat: true,
    interceptors: [withToken],
  });
  return createServiceClients(transport);
}
