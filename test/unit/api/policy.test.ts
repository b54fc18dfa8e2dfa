import { expect, test } from 'vitest';
import { AccountService } from '../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { CrawlerService } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../../gen/queuedcrawler/v1/host_service_pb.ts';
import { OperatorService } from '../../../gen/queuedcrawler/v1/operator_service_pb.ts';
import { ProxyService } from '../../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { methodName } from '../../../src/api/method.ts';
import { methodPolicy } from '../../../src/api/policy.ts';

const KIB = 1_024;
const ordinary = { access: 'account', maxBytes: 64 * KIB, maxFields: 4_096, takesSlot: true };
const oneUrl = { ...ordinary, maxBytes: 2_048 * KIB, takesSlot: false };
const manyUrls = { ...oneUrl, maxBytes: 10_240 * KIB, maxFields: 100_000 };
const poolOfProxies = { ...ordinary, maxBytes: 384 * KIB };
const longRead = { ...ordinary, readBytes: 16_384 * KIB };
const admin = { ...ordinary, access: 'admin' };

const exceptions: Readonly<Record<string, object>> = {
  'PushService/Push': oneUrl,
  'PushService/Crawl': oneUrl,
  'PushService/PushBatch': manyUrls,
  'PushService/PushStream': manyUrls,
  'CrawlerService/ListCrawlers': longRead,
  'CrawlerService/ListAsyncJobs': longRead,
  'CrawlerService/TestDelivery': { ...ordinary, takesSlot: false },
  'ActivityService/ListJobs': longRead,
  'ActivityService/ListResults': longRead,
  'ActivityService/ListDeliveries': longRead,
  'ActivityService/ListFailures': longRead,
  'ActivityService/Search': longRead,
  'ActivityService/GetActivity': longRead,
  'HostService/ListHosts': longRead,
  'ProxyService/CreateProxyPool': poolOfProxies,
  'ProxyService/UpdateProxyPool': poolOfProxies,
  'StatsService/GetStats': longRead,
  'OperatorService/GetInstallation': { ...admin, takesSlot: false },
  'OperatorService/GetSetup': { ...admin, takesSlot: false },
  'OperatorService/ListProxies': { ...admin, takesSlot: false },
};

const services = [
  AccountService,
  ActivityService,
  CrawlerService,
  HostService,
  OperatorService,
  ProxyService,
  PushService,
  StatsService,
  StorageService,
  WatchService,
];

test.each(
  services.flatMap(({ methods }) => methods.map((desc) => [methodName(desc), desc] as const)),
)('%s has its limits from the proto', (name, desc) => {
  const usual = desc.parent === AccountService ? admin : ordinary;
  const exception = exceptions[name.replace('queuedcrawler.v1.', '')];
  expect(methodPolicy(desc)).toEqual({ readBytes: 0, ...(exception ?? usual) });
});
