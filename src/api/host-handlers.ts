import type { MessageInitShape } from '@bufbuild/protobuf';
import {
  HostOrder,
  type HostSchema,
  HostService,
  HostWaitKind,
  type HostWaitSchema,
} from '../../gen/queuedcrawler/v1/host_service_pb.ts';
import { invalidField } from '../domain/errors.ts';
import { integerInRange } from '../domain/limits.ts';
import type { HostManagement } from '../service/crawlers/host-management.ts';
import type {
  HostOrder as DomainOrder,
  HostReads,
  HostWait,
  ListedHost,
} from '../service/reads/host-list.ts';
import { callerOf } from './caller-of.ts';
import { nameOnWire, optionalTimestamp, toFailureCounts } from './crawler-messages.ts';
import { type Method, toMethods } from './method.ts';

const ORDERS = {
  queued: HostOrder.QUEUED,
  slowest: HostOrder.SLOWEST,
  failed: HostOrder.FAILED,
  running: HostOrder.RUNNING,
  rate: HostOrder.RATE,
  name: HostOrder.NAME,
} as const satisfies Record<DomainOrder, HostOrder>;

const WAIT_KINDS = {
  paused: HostWaitKind.PAUSED,
  away: HostWaitKind.AWAY,
  slow: HostWaitKind.SLOW,
  pace: HostWaitKind.PACE,
} as const satisfies Record<HostWait['kind'], HostWaitKind>;

const DEFAULT_COUNT = 100;
const MAX_COUNT = 1_000;
const MAX_CONTAINS = 253;

/** The methods of the host service. */
export function hostHandlers(deps: {
  readonly hostReads: HostReads;
  readonly hosts: HostManagement;
}): Method[] {
  const { hosts } = deps;
  return toMethods(HostService, {
    async listHosts(request, call) {
      const { maxCount, hostContains } = request;
      if (hostContains.length > MAX_CONTAINS) {
        throw invalidField('host_contains', `host_contains takes ${MAX_CONTAINS} characters.`);
      }
      const found = await deps.hostReads.list(callerOf(call), request.name, {
        order: nameOnWire(ORDERS, request.orderBy) ?? 'queued',
        limit: integerInRange('max_count', maxCount === 0 ? DEFAULT_COUNT : maxCount, 1, MAX_COUNT),
        contains: hostContains.toLowerCase(),
      });
      return { hosts: found.hosts.map(toHostMessage), queuedHosts: BigInt(found.queuedHosts) };
    },
    async pauseHost(request, call) {
      return { host: await hosts.pause(callerOf(call), request.name, request.host), paused: true };
    },
    async unpauseHost(request, call) {
      const owner = callerOf(call);
      return { host: await hosts.unpause(owner, request.name, request.host), paused: false };
    },
    async purgeHost(request, call) {
      const { removed, hasMore } = await hosts.purge(callerOf(call), request.name, request.host);
      return { purged: BigInt(removed), hasMore };
    },
  });
}

/** What a host is waited for, on the wire. */
export function toHostWaitMessage(wait: HostWait): MessageInitShape<typeof HostWaitSchema> {
  const { kind, reason, until } = wait;
  return { kind: WAIT_KINDS[kind], reason, until: optionalTimestamp(until) };
}

function toHostMessage(row: ListedHost): MessageInitShape<typeof HostSchema> {
  const { host, running, perSecond, queued, wait } = row;
  return {
    host,
    running,
    tries: BigInt(row.tries),
    failed: BigInt(row.failed),
    failures: toFailureCounts(row.failures),
    perSecond,
    meanMs: Math.round(row.meanMs),
    queued: queued === undefined ? undefined : BigInt(queued),
    nextDueAt: optionalTimestamp(row.nextDueAt),
    lastTryAt: optionalTimestamp(row.lastTryAt),
    wait: wait && toHostWaitMessage(wait),
  };
}
