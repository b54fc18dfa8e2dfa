import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { AccountService } from '../../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { BatchService } from '../../../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { CrawlerService } from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../../../gen/queuedcrawler/v1/host_service_pb.ts';
import { ProxyService } from '../../../../gen/queuedcrawler/v1/proxy_service_pb.ts';

/**
 * The methods whose calls are in the history of an account, by name. Streams read, except
 * ActOnMatches. A test compares it with what the service records.
 */
export const RECORDED_METHODS: readonly string[] = [
  CrawlerService,
  BatchService,
  HostService,
  ProxyService,
  AccountService,
]
  .flatMap(({ methods }) => methods)
  .filter(
    ({ methodKind, idempotency }) =>
      methodKind === 'unary' && idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
  )
  .concat(ActivityService.method.actOnMatches)
  .map(({ name }) => name)
  .toSorted();
