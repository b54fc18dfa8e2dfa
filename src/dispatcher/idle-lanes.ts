import { type Lane, startAt } from './host-lane.ts';

/** The lanes without jobs, which are kept for what is known of their hosts. */
export interface IdleLanes {
  readonly size: number;
  /** Has to be called after each change of a lane's jobs or of its host's health. */
  changed(lane: Lane): void;
  delete(lane: Lane): void;
  /**
   * The lane to forget: the one that has had no jobs for the longest time, of a host that bears
   * everything and may be asked at `nowMs`. Without such a lane, one of a host in trouble.
   */
  oldest(nowMs: number): Lane | undefined;
}

/** Makes an empty collection. */
export function createIdleLanes(): IdleLanes {
  const ordinary = new Set<Lane>();
  const inTrouble = new Set<Lane>();

  function remove(lane: Lane): void {
    ordinary.delete(lane);
    inTrouble.delete(lane);
  }

  return {
    get size() {
      return ordinary.size + inTrouble.size;
    },
    changed(lane) {
      remove(lane);
      if (lane.ahead.size + lane.running.size > 0) return;
      (lane.health.isOrdinary ? ordinary : inTrouble).add(lane);
    },
    delete: remove,
    oldest(nowMs) {
      const [first] = ordinary;
      const [other] = inTrouble;
      return first !== undefined && startAt(first) <= nowMs ? first : (other ?? first);
    },
  };
}
