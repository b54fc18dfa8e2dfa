import { Health } from '../../gen/health/v1/health_pb.ts';
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
import type { ServiceClock } from '../domain/clock.ts';
import type { Logger } from '../domain/logger.ts';
import type { FairPool } from '../fairness/fair-pool.ts';
import type { Service } from '../service/service.ts';
import { accountHandlers } from './account-handlers.ts';
import { activityHandlers } from './activity-handlers.ts';
import { type Admission, withAdmission } from './admission.ts';
import { batchHandlers } from './batch-handlers.ts';
import { crawlerHandlers } from './crawler-handlers.ts';
import { withConnectErrors } from './errors.ts';
import { createHealthMethods } from './health.ts';
import { hostHandlers } from './host-handlers.ts';
import { withKnownEnums } from './known-enums.ts';
import type { Method } from './method.ts';
import { type OperatorParts, operatorHandlers } from './operator-handlers.ts';
import { proxyHandlers } from './proxy-handlers.ts';
import { pushHandlers } from './push-handlers.ts';
import { withRecords } from './record-changes.ts';
import { createReflectionMethods } from './reflection.ts';
import { withRequestQuota } from './request-quota.ts';
import { statsHandlers } from './stats-handlers.ts';
import { storageHandlers } from './storage-handlers.ts';
import { watchHandlers } from './watch-handlers.ts';

/** The services of the API. */
const apiServices = [
  CrawlerService,
  PushService,
  StorageService,
  StatsService,
  ActivityService,
  BatchService,
  HostService,
  ProxyService,
  WatchService,
  AccountService,
  OperatorService,
] as const;

/** The collaborators of the table. */
export interface MethodsDeps {
  readonly service: Service;
  readonly limits: { readonly crawlerQueue: number; readonly accountQueue: number };
  readonly publicUrl: () => string;
  readonly isReady: () => Promise<boolean>;
  readonly admission: Admission;
  readonly operator: OperatorParts;
  /** Slots for the calls of all accounts. */
  readonly slots: FairPool;
  readonly clock: ServiceClock;
  readonly logger: Logger;
}

/**
 * Makes the table of methods that every protocol mounts; `health` is the part that a process
 * without the API serves.
 */
export function createMethods(deps: MethodsDeps): { methods: Method[]; health: Method[] } {
  const { service, limits, publicUrl, isReady, admission, slots, clock, logger } = deps;
  const health = createHealthMethods({
    services: apiServices.map((each) => each.typeName),
    isReady,
  });
  const parts = { ...service, limits, publicUrl, slots, clock, logger };
  const methods = [
    ...crawlerHandlers(parts),
    ...pushHandlers(parts),
    ...storageHandlers(parts),
    ...statsHandlers(parts),
    ...activityHandlers(parts),
    ...batchHandlers(parts),
    ...hostHandlers(parts),
    ...proxyHandlers(parts),
    ...watchHandlers(parts),
    ...accountHandlers(parts),
    ...operatorHandlers({ ...parts, ...deps.operator }),
    ...health,
    ...createReflectionMethods([...apiServices, Health]),
  ];
  const counted = withRequestQuota(withKnownEnums(methods), service.quotas);
  return {
    methods: withConnectErrors(
      withAdmission(withRecords(counted, service.auditTrail), admission, { slots }),
      logger,
    ),
    health: withConnectErrors(health, logger),
  };
}
