import type { Clock } from '../domain/clock.ts';
import { createLruMap } from '../domain/lru-map.ts';
import { type Claimant, createFairPool } from '../fairness/fair-pool.ts';
import { createEndpoint, type Endpoint } from './paced-endpoint.ts';
import { createPacedLane, type PacedLane } from './paced-lane.ts';

/** The paces of all endpoints of this process; they outlive the crawlers' runs. */
export interface DeliveryPaces {
  open(claimant: Claimant, onRoom: () => void): PacedLane;
}

/** The collaborators of the paces. */
export interface DeliveryPacesDeps {
  readonly clock: Clock;
  readonly ackTimeoutMs: number;
  /** Posts in flight in this process, over all accounts; default 512. */
  readonly capacity?: number;
}

/**
 * Endpoints that are remembered, many more than one process posts to at a time. The least recently
 * used idle one is forgotten first.
 */
const MAX_ENDPOINTS = 10_000;
const MAX_POSTS_IN_FLIGHT = 512;

/** Makes paces without any endpoint yet. */
export function createDeliveryPaces(deps: DeliveryPacesDeps): DeliveryPaces {
  const { capacity = MAX_POSTS_IN_FLIGHT } = deps;
  const endpoints = createLruMap<string, Endpoint>({
    maxEntries: MAX_ENDPOINTS,
    isPinned: ({ isIdle }) => !isIdle,
  });
  const pool = createFairPool({ name: 'deliveries', capacity, reserve: Math.ceil(capacity / 8) });

  function findEndpoint(callbackUrl: string): Endpoint {
    const key = endpointKey(callbackUrl);
    const endpoint = endpoints.get(key) ?? createEndpoint(deps);
    endpoints.set(key, endpoint);
    return endpoint;
  }

  return {
    open: (claimant, onRoom) => createPacedLane({ claimant, pool, findEndpoint, onRoom }),
  };
}

/** Callback URLs that differ only in query, credentials or fragment are one endpoint. */
function endpointKey(callbackUrl: string): string {
  const url = URL.parse(callbackUrl);
  return url === null ? callbackUrl : `${url.origin}${url.pathname}`;
}
