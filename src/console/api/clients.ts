import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { effect } from '@preact/signals';
import { AccountService } from '../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { CrawlerService, TokenType } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { OperatorService } from '../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { session } from './session.ts';

/** The API as one token may call it. */
export interface Clients {
  readonly crawlers: Client<typeof CrawlerService>;
  readonly activity: Client<typeof ActivityService>;
  readonly push: Client<typeof PushService>;
  readonly storage: Client<typeof StorageService>;
  readonly stats: Client<typeof StatsService>;
  readonly watch: Client<typeof WatchService>;
  readonly accounts: Client<typeof AccountService>;
  readonly operator: Client<typeof OperatorService>;
}

const byToken = new Map<string, Clients>();
effect(() => {
  if (session.value === undefined) byToken.clear();
});

/** The clients of a token, which travels in a header only. */
export function clientsOf(token: string): Clients {
  let clients = byToken.get(token);
  if (clients === undefined) {
    clients = makeClients(token);
    byToken.set(token, clients);
  }
  return clients;
}

/** The clients that address crawlers of this type. Throws when the session lacks the token. */
export function clientsFor(type: TokenType): Clients {
  const { normal, javascript } = session.value ?? {};
  const token = type === TokenType.JAVASCRIPT ? javascript : normal;
  if (token === undefined) throw new Error('The session has no token of this type.');
  return clientsOf(token);
}

/** The clients for what either token may ask. */
export function accountClients(): Clients {
  const { normal, javascript } = session.value ?? {};
  return clientsOf(normal ?? javascript ?? '');
}

/** The clients of the operator. */
export function operatorClients(): Clients {
  return clientsOf(session.value?.admin ?? '');
}

function makeClients(token: string): Clients {
  const withToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: location.origin,
    useBinaryFormat: true,
    interceptors: [withToken],
  });
  return {
    crawlers: createClient(CrawlerService, transport),
    activity: createClient(ActivityService, transport),
    push: createClient(PushService, transport),
    storage: createClient(StorageService, transport),
    stats: createClient(StatsService, transport),
    watch: createClient(WatchService, transport),
    accounts: createClient(AccountService, transport),
    operator: createClient(OperatorService, transport),
  };
}
