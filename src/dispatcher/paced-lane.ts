import type { Claimant, FairPool } from '../fairness/fair-pool.ts';
import { createWaitingGrant } from '../fairness/waiting-grant.ts';
import type { DeliverySlot, Endpoint } from './paced-endpoint.ts';

/** One crawler among those that post to an endpoint. */
export interface PacedLane {
  /**
   * Takes at most `wanted` slots for posts to `callbackUrl`. A lane that gets fewer waits in line;
   * `onRoom` is called when it should ask again. Crawlers of one endpoint take turns.
   */
  take(callbackUrl: string, wanted: number): DeliverySlot[];
  /** Waits in line for an endpoint without a post; `onRoom` is called at once if it has room. */
  waitFor(callbackUrl: string): void;
  /** How many posts of this lane could start within `ms`: none while the endpoint takes nothing. */
  takesWithin(callbackUrl: string, ms: number): number;
  /** Whether other lanes have all the slots of the process. */
  readonly waitsForSlots: boolean;
  /** Stops waiting. */
  leave(): void;
  /**
   * When the endpoint that it waits for may be sent posts again; undefined while posts are in
   * flight there, because their answers may bring room.
   */
  pausedUntil(): Date | undefined;
}

/** The collaborators of a lane. */
export interface PacedLaneDeps {
  readonly claimant: Claimant;
  /** Posts in flight in the process. */
  readonly pool: FairPool;
  readonly findEndpoint: (callbackUrl: string) => Endpoint;
  readonly onRoom: () => void;
}

/** Makes a lane that waits nowhere. It waits either in the line of one endpoint or in the pool. */
export function createPacedLane(deps: PacedLaneDeps): PacedLane {
  const { claimant, pool, onRoom } = deps;
  const self = {};
  let joined: Endpoint | undefined;
  const poolSlot = createWaitingGrant(pool, onRoom);

  function leaveLine(): void {
    const endpoint = joined;
    joined = undefined;
    endpoint?.leave(self);
  }

  function join(endpoint: Endpoint): void {
    joined = endpoint;
    endpoint.join(self, onRoom);
  }

  /** This lane's part of something of the endpoint, which it shares with the lanes in line. */
  function shareOf(endpoint: Endpoint, amount: number): number {
    const others = endpoint.waiting - (endpoint.holds(self) ? 1 : 0);
    return Math.ceil(amount / (others + 1));
  }

  /** Starts posts up to this lane's share of the endpoint's room. */
  function startPosts(endpoint: Endpoint, wanted: number): DeliverySlot[] {
    const share = Math.min(wanted, shareOf(endpoint, endpoint.room()));
    const slots: DeliverySlot[] = [];
    while (slots.length < share && endpoint.room() > 0) {
      const grant = poolSlot.take() ?? pool.tryAcquire(claimant, 1);
      if (grant === undefined) {
        poolSlot.wait(claimant, 1);
        break;
      }
      slots.push(endpoint.start(grant));
    }
    return slots;
  }

  return {
    take(callbackUrl, wanted) {
      const endpoint = deps.findEndpoint(callbackUrl);
      if (joined !== endpoint || wanted <= 0) leaveLine();
      const isFull = endpoint.room() === 0;
      if (wanted > 0 && (isFull || endpoint.isBehindAnother(self))) {
        // Keeps its place in line.
        if (joined === undefined) join(endpoint);
        poolSlot.cancel();
        if (isFull) endpoint.serve();
        return [];
      }
      const slots = startPosts(endpoint, wanted);
      leaveLine();
      if (!poolSlot.waits) {
        // Gives back a slot that it did not need.
        poolSlot.cancel();
        if (slots.length < wanted) join(endpoint);
      }
      endpoint.serve();
      return slots;
    },
    waitFor(callbackUrl) {
      // It is called when the process has a slot.
      if (poolSlot.waits) return;
      const endpoint = deps.findEndpoint(callbackUrl);
      if (joined !== endpoint) leaveLine();
      if (joined === undefined) join(endpoint);
      endpoint.serve();
    },
    takesWithin(callbackUrl, ms) {
      const endpoint = deps.findEndpoint(callbackUrl);
      return shareOf(endpoint, endpoint.takesWithin(ms));
    },
    get waitsForSlots() {
      return poolSlot.waits;
    },
    leave() {
      leaveLine();
      poolSlot.cancel();
    },
    pausedUntil: () => joined?.pausedUntil(),
  };
}
