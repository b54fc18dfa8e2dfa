import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../gen/health/v1/health_pb.ts';
import { DomainError } from '../domain/errors.ts';
import { raceAbort } from '../domain/race-abort.ts';
import { type Method, toMethods } from './method.ts';

/** The collaborators of the health service. */
export interface HealthDeps {
  /** Full names of the services that can be queried; the empty name stands for the whole server. */
  readonly services: readonly string[];
  /** Whether the service can answer calls now. */
  readonly isReady: () => boolean | Promise<boolean>;
  /** How often Watch checks the status, in milliseconds. Default 1,000. */
  readonly watchIntervalMs?: number;
}

/** Most watchers at once; each takes about 80 KB. */
const MAX_WATCHERS = 500;

/** The methods of grpc.health.v1: either all services are ready or none is. */
export function createHealthMethods(deps: HealthDeps): Method[] {
  const services = new Set(['', ...deps.services]);
  const { join, nextPoll } = createWatch(deps);

  async function servingStatus(service: string): Promise<ServingStatus> {
    if (!services.has(service)) return ServingStatus.SERVICE_UNKNOWN;
    return (await deps.isReady()) ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }

  return toMethods(Health, {
    async check({ service }) {
      const status = await servingStatus(service);
      if (status === ServingStatus.SERVICE_UNKNOWN) {
        throw new DomainError('not_found', 'unknown_service', 'There is no service of this name.');
      }
      return { status };
    },
    async list() {
      const status = await servingStatus('');
      return { statuses: Object.fromEntries([...services].map((name) => [name, { status }])) };
    },
    async *watch({ service }, call) {
      using _watcher = join();
      let last: ServingStatus | undefined;
      for (;;) {
        const status = await servingStatus(service);
        if (status !== last) yield { status };
        last = status;
        await raceAbort(nextPoll(), call.signal);
      }
    },
  });
}

/** Polls with one timer for all watchers, and without one while nobody watches. */
function createWatch({ watchIntervalMs = 1_000 }: HealthDeps) {
  let watchers = 0;
  let timer: NodeJS.Timeout | undefined;
  let poll = Promise.withResolvers<void>();

  return {
    /** Adds a watcher until it is disposed of. Throws `exhausted` when there are too many. */
    join(): Disposable {
      if (watchers >= MAX_WATCHERS) {
        throw new DomainError('exhausted', 'too_many_watchers', 'Too many clients watch.', {
          retryAfterMs: 10_000,
          metadata: { limit: MAX_WATCHERS },
        });
      }
      watchers += 1;
      timer ??= setInterval(() => {
        poll.resolve();
        poll = Promise.withResolvers();
      }, watchIntervalMs).unref();
      return {
        [Symbol.dispose]() {
          watchers -= 1;
          if (watchers > 0) return;
          clearInterval(timer);
          timer = undefined;
        },
      };
    },
    /** Resolves at the next poll. */
    nextPoll: () => poll.promise,
  };
}
