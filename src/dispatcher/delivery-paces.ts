import type { Clock } from '../domain/clock.ts';
import type { EndpointAnswer } from '../domain/delivery.ts';
import { createLruMap } from '../domain/lru-map.ts';
import { type Claimant, createFairPool, type Grant } from '../fairness/fair-pool.ts';
import { createEndpointPace, type EndpointPace } from './endpoint-pace.ts';

/** The permission for one post. */
export interface DeliverySlot {
  /** Gives the slot back; `answer` is undefined if nothing was posted. Further calls do nothing. */
  end(answer: EndpointAnswer | undefined): void;
}

/** One crawler among those that post to an endpoint. */
export interface PacedLane {
  /**
   * Takes at most `wanted` slots for posts to `callbackUrl`. A lane that gets fewer waits in line;
   * `onRoom` is called when it should ask again. Crawlers of one endpoint take turns.
   */
  take(callbackUrl: string, wanted: number): DeliverySlot[];
  /** Stops waiting. */
  leave(): void;
  /**
   * When the endpoint that it waits for may be sent posts again; undefined while posts are in
   * flight there, because their answers may bring room.
   */
  pausedUntil(): Date | undefined;
}

/** The paces of all endpoints of this process; they outlive the crawlers' runs. */
export interface DeliveryPaces {
  open(claimant: Claimant, onRoom: () => void): PacedLane;
  /** Posts in flight. */
  readonly inFlight: number;
}

/** The collaborators of the paces. */
export interface DeliveryPacesDeps {
  readonly clock: Clock;
  readonly ackTimeoutMs: number;
  /** Posts in flight in this process, over all accounts; default 512. */
  readonly capacity?: number;
}

interface Endpoint {
  readonly pace: EndpointPace;
  /** Lanes that wait for room; the map's order is the order of turns. */
  readonly line: Map<object, () => void>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Endpoints that are remembered, many more than one process posts to at a time. The least recently
 * used idle one is forgotten first.
 */
const MAX_ENDPOINTS = 10_000;
const MAX_POSTS_IN_FLIGHT = 512;

/**
 * Makes paces without any endpoint yet. Their timers run only while a lane waits, and do not keep
 * the process alive.
 */
export function createDeliveryPaces(deps: DeliveryPacesDeps): DeliveryPaces {
  const { clock, capacity = MAX_POSTS_IN_FLIGHT } = deps;
  const endpoints = createLruMap<string, Endpoint>({
    maxEntries: MAX_ENDPOINTS,
    isPinned: ({ pace, line }) => pace.inFlight > 0 || line.size > 0,
  });
  const pool = createFairPool({ name: 'deliveries', capacity, reserve: Math.ceil(capacity / 8) });
  const nowMs = (): number => clock.now().getTime();

  function touchEndpoint(callbackUrl: string): Endpoint {
    const key = endpointKey(callbackUrl);
    const endpoint = endpoints.get(key) ?? {
      pace: createEndpointPace(deps),
      line: new Map(),
      timer: undefined,
    };
    endpoints.set(key, endpoint);
    return endpoint;
  }

  /** Calls the first lane in line if there is room, else sets a timer for when there may be. */
  function serve(endpoint: Endpoint): void {
    const { pace, line } = endpoint;
    clearTimeout(endpoint.timer);
    endpoint.timer = undefined;
    const [onRoom] = line.values();
    if (onRoom === undefined) return;
    const now = nowMs();
    if (pace.room(now) > 0) {
      onRoom();
      return;
    }
    const opensAt = pace.opensAt(now);
    if (opensAt === undefined) return;
    endpoint.timer = setTimeout(() => serve(endpoint), Math.max(1, Math.ceil(opensAt - now)));
    endpoint.timer.unref();
  }

  function startPost(endpoint: Endpoint, grant: Grant): DeliverySlot {
    const post = endpoint.pace.start(nowMs());
    let ended = false;
    return {
      end(answer) {
        if (ended) return;
        ended = true;
        endpoint.pace.end(post, answer, nowMs());
        grant.release();
        serve(endpoint);
      },
    };
  }

  return {
    get inFlight() {
      return pool.used;
    },
    open(claimant, onRoom) {
      const self = {};
      let joined: Endpoint | undefined;
      let waiting: AbortController | undefined;
      /** A slot of the pool that was granted after a wait. */
      let spare: Grant | undefined;

      function leaveLine(): void {
        if (joined === undefined) return;
        const endpoint = joined;
        joined = undefined;
        const [first] = endpoint.line.keys();
        endpoint.line.delete(self);
        if (first === self) serve(endpoint);
      }

      function leavePool(): void {
        waiting?.abort();
        waiting = undefined;
        spare?.release();
        spare = undefined;
      }

      function waitForPool(): void {
        if (waiting !== undefined) return;
        const controller = new AbortController();
        waiting = controller;
        pool.acquire(claimant, 1, controller.signal).then(
          (grant) => {
            if (controller.signal.aborted) {
              grant.release();
              return;
            }
            waiting = undefined;
            spare = grant;
            onRoom();
          },
          // Aborted by `leave`.
          () => undefined,
        );
      }

      function poolSlot(): Grant | undefined {
        const grant = spare ?? pool.tryAcquire(claimant, 1);
        spare = undefined;
        return grant;
      }

      function join(endpoint: Endpoint): void {
        joined = endpoint;
        endpoint.line.set(self, onRoom);
      }

      function takeSlots(endpoint: Endpoint, wanted: number): DeliverySlot[] {
        const { pace, line } = endpoint;
        const others = line.size - (line.has(self) ? 1 : 0);
        const share = Math.min(wanted, Math.ceil(pace.room(nowMs()) / (others + 1)));
        const slots: DeliverySlot[] = [];
        while (slots.length < share && pace.room(nowMs()) > 0) {
          const grant = poolSlot();
          if (grant === undefined) {
            waitForPool();
            break;
          }
          slots.push(startPost(endpoint, grant));
        }
        return slots;
      }

      return {
        take(callbackUrl, wanted) {
          const endpoint = touchEndpoint(callbackUrl);
          if (joined !== endpoint || wanted <= 0) leaveLine();
          const [first] = endpoint.line.keys();
          if (wanted > 0 && first !== undefined && first !== self) {
            if (joined === undefined) join(endpoint);
            leavePool();
            return [];
          }
          const slots = takeSlots(endpoint, wanted);
          leaveLine();
          const waitsInPool = waiting !== undefined;
          if (!waitsInPool) leavePool();
          if (slots.length < wanted && !waitsInPool) join(endpoint);
          serve(endpoint);
          return slots;
        },
        leave() {
          leaveLine();
          leavePool();
        },
        pausedUntil() {
          const now = nowMs();
          const opensAt = joined?.pace.inFlight === 0 ? joined.pace.opensAt(now) : undefined;
          return opensAt === undefined || opensAt <= now ? undefined : new Date(opensAt);
        },
      };
    },
  };
}

/** Callback URLs that differ only in query, credentials or fragment are one endpoint. */
function endpointKey(callbackUrl: string): string {
  const url = URL.parse(callbackUrl);
  return url === null ? callbackUrl : `${url.origin}${url.pathname}`;
}
