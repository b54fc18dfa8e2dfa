import { setTimeout as wait } from 'node:timers/promises';
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/health/v1/health_pb.ts';
import { DomainError } from '../domain/errors.ts';
import { type Method, methodsOf } from './method.ts';

/** What health works with. */
export interface HealthDeps {
  /** Full names of the services that can be asked for; the empty name is the server as a whole. */
  readonly services: readonly string[];
  /** Whether calls would be answered now. */
  readonly isReady: () => boolean | Promise<boolean>;
  /** How often Watch looks, in milliseconds. Default 1,000. */
  readonly watchIntervalMs?: number;
}

/** grpc.health.v1: all services are ready or none is. */
export function createHealthMethods(deps: HealthDeps): Method[] {
  const services = new Set(['', ...deps.services]);

  async function statusOf(service: string): Promise<ServingStatus> {
    if (!services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return (await deps.isReady()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }

  return methodsOf(Health, {
    async check({ service }) {
      const status = await statusOf(service);
      if (status === ServingStatus.SERVICE_UNKNOWN) {
        throw new DomainError('not_found', 'unknown_service', 'There is no service of this name.');
      }
      return { status };
    },
    async list() {
      const status = await statusOf('');
      return { statuses: Object.fromEntries([...services].map((name) => [name, { status }])) };
    },
    async *watch({ service }, call) {
      let last: ServingStatus | undefined;
      for (;;) {
        const status = await statusOf(service);
        if (status !== last) yield { status };
        last = status;
        await wait(deps.watchIntervalMs ?? 1_000, undefined, { signal: call.signal, ref: false });
      }
    },
  });
}
