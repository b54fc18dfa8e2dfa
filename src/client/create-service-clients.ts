import { createClient, type Transport } from '@connectrpc/connect';
import { AccountService } from '../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { BatchService } from '../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { CrawlerService } from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../gen/queuedcrawler/v1/host_service_pb.ts';
import { OperatorService } from '../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { ProxyService } from '../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { PushService } from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../gen/queuedcrawler/v1/watch_service_pb.ts';
import type { ServiceClients } from './service-clients.ts';

/** Makes the clients over a transport, which knows the token. */
export function createServiceClients(transport: Transport): ServiceClients {
  return {
    crawlers: createClient(CrawlerService, transport),
    pushes: createClient(PushService, transport),
    storage: createClient(StorageService, transport),
    stats: createClient(StatsService, transport),
    activity: createClient(ActivityService, transport),
    batches: createClient(BatchService, transport),
    hosts: createClient(HostService, transport),
    proxies: createClient(ProxyService, transport),
    watch: createClient(WatchService, transport),
    accounts: createClient(AccountService, transport),
    operator: createClient(OperatorService, transport),
  };
}
