import type { Clock } from '../domain/clock.ts';
import type { EndpointAnswer } from '../domain/delivery.ts';
import type { Grant } from '../fairness/fair-pool.ts';
import { createEndpointPace } from './endpoint-pace.ts';

/** The permission for one post. */
export interface DeliverySlot {
  /** Gives the slot back; `answer` is undefined if nothing was posted. Further calls do nothing. */
  end(answer: EndpointAnswer | undefined): void;
}

/** One endpoint: its pace, and the lanes that wait in line for room. */
export interface Endpoint {
  /** Whether no post is in flight and no lane waits. */
  readonly isIdle: boolean;
  /** Lanes in line. */
  readonly waiting: number;
  /** How many posts may start now. */
  room(): number;
  /** How many posts it takes within `ms`; see `EndpointPace`. */
  takesWithin(ms: number): number;
  /** When posts may start again; undefined if they may now, or if the end of a post decides it. */
  pausedUntil(): Date | undefined;
  /** Whether the lane is in line. */
  holds(lane: object): boolean;
  /** Whether another lane is first in line, whose turn comes before. */
  isBehindAnother(lane: object): boolean;
  /** Puts the lane at the end of the line; `onRoom` is called when it is first and there is room. */
  join(lane: object, onRoom: () => void): void;
  leave(lane: object): void;
  /** Starts a post; its slot returns `grant`. */
  start(grant: Grant): DeliverySlot;
  /** Calls the first lane in line if there is room, else sets a timer for when there may be. */
  serve(): void;
}

/**
 * Makes an endpoint that nothing is known of. Its timer runs only while a lane waits, and does not
 * keep the process alive.
 */
export function createEndpoint(deps: {
  readonly clock: Clock;
  readonly ackTimeoutMs: number;
}): Endpoint {
  const pace = createEndpointPace(deps);
  /** The map's order is the order of turns. */
  const line = new Map<object, () => void>();
  let timer: NodeJS.Timeout | undefined;
  const nowMs = (): number => deps.clock.now().getTime();

  function serve(): void {
    clearTimeout(timer);
    timer = undefined;
    const [onRoom] = line.values();
    if (onRoom === undefined) return;
    const now = nowMs();
    if (pace.room(now) > 0) {
      onRoom();
      return;
    }
    const opensAt = pace.opensAt(now);
    if (opensAt === undefined) return;
    timer = setTimeout(serve, Math.max(1, Math.ceil(opensAt - now)));
    timer.unref();
  }

  return {
    get isIdle() {
      return pace.inFlight === 0 && line.size === 0;
    },
    get waiting() {
      return line.size;
    },
    room: () => pace.room(nowMs()),
    takesWithin: (ms) => pace.takesWithin(ms, nowMs()),
    pausedUntil() {
      const now = nowMs();
      const opensAt = pace.inFlight === 0 ? pace.opensAt(now) : undefined;
      return opensAt === undefined || opensAt <= now ? undefined : new Date(opensAt);
    },
    holds: (lane) => line.has(lane),
    isBehindAnother(lane) {
      const [first] = line.keys();
      return first !== undefined && first !== lane;
    },
    join: (lane, onRoom) => void line.set(lane, onRoom),
    leave(lane) {
      const [first] = line.keys();
      line.delete(lane);
      if (first === lane) serve();
    },
    start(grant) {
      const post = pace.start(nowMs());
      let ended = false;
      return {
        end(answer) {
          if (ended) return;
          ended = true;
          pace.end(post, answer, nowMs());
          grant.release();
          serve();
        },
      };
    },
    serve,
  };
}
