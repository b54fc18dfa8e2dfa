import { create, type DescMethod, type Message } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { AccountService } from '../../../gen/queuedcrawler/v1/account_service_pb.ts';
import { ActivityService } from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { BatchService } from '../../../gen/queuedcrawler/v1/batch_service_pb.ts';
import { CrawlerService } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { HostService } from '../../../gen/queuedcrawler/v1/host_service_pb.ts';
import { ProxyService } from '../../../gen/queuedcrawler/v1/proxy_service_pb.ts';
import { PushService } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { StatsService } from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { StorageService } from '../../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { WatchService } from '../../../gen/queuedcrawler/v1/watch_service_pb.ts';
import { activityHandlers } from '../../../src/api/activity-handlers.ts';
import type { Call, Method } from '../../../src/api/method.ts';
import { withRecords } from '../../../src/api/record-changes.ts';
import { RECORDED_METHODS } from '../../../src/console/pages/account/recorded-methods.ts';

const SERVICES = [
  AccountService,
  ActivityService,
  BatchService,
  CrawlerService,
  HostService,
  ProxyService,
  PushService,
  StatsService,
  StorageService,
  WatchService,
];

/** A method that does nothing. */
function idle(desc: DescMethod): Method {
  return desc.methodKind === 'unary'
    ? { kind: 'unary', desc, handle: () => Promise.resolve({}) }
    : { kind: 'server_streaming', desc, async *handle() {} };
}

/** Calls a method to its end. */
async function perform(method: Method): Promise<void> {
  const signal = new AbortController().signal;
  const call = { isOperator: true, remote: '', signal, caller: {} } as Call;
  const request: Message = create(method.desc.input);
  if (method.kind === 'unary') await method.handle(request, call);
  else if (method.kind === 'server_streaming') await Array.fromAsync(method.handle(request, call));
}

test('the console filters the history by exactly the methods that are recorded', async () => {
  const recorded = new Set<string>();
  const auditTrail = {
    note: ({ method }: { readonly method: string }) => void recorded.add(method),
    list: () => Promise.reject(new Error('nothing is listed')),
  };
  const real = activityHandlers({
    auditTrail,
    tokenWatch: {
      watch: () => ({ signal: new AbortController().signal, [Symbol.dispose]: () => undefined }),
    },
    async *actOnMatches() {
      yield { matched: 1, done: 1, refused: 0, cursor: undefined };
    },
  } as unknown as Parameters<typeof activityHandlers>[0]);
  const descs: readonly DescMethod[] = SERVICES.flatMap(({ methods }) => methods);
  const methods = descs.map(
    (desc) => real.find((each) => each.desc === desc && each.kind !== 'unary') ?? idle(desc),
  );
  for (const method of withRecords(methods, auditTrail)) await perform(method);
  expect(RECORDED_METHODS).toEqual([...recorded].toSorted());
});
