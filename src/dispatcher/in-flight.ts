/** Work under way, by `rid`, each with its own abort. */
export interface InFlight {
  readonly size: number;
  /** Starts `work`; it leaves the set when it settles, whatever the end. */
  start(rid: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Aborts one; false when it is not under way. */
  abort(rid: string, reason: WorkAborted): boolean;
  abortAll(reason: WorkAborted): void;
}

/** Why work was aborted: `dropped` leaves no trace, `released` gives the job back untried. */
export class WorkAborted extends Error {
  override readonly name = 'WorkAborted';
  readonly end: 'dropped' | 'released';

  constructor(end: 'dropped' | 'released') {
    super(`work was ${end}`);
    this.end = end;
  }
}

/** Makes an empty set. `onSettled` is called after each end. */
export function createInFlight(onSettled: () => void): InFlight {
  const flights = new Map<string, AbortController>();
  return {
    get size() {
      return flights.size;
    },
    start(rid, work) {
      const controller = new AbortController();
      flights.set(rid, controller);
      void work(controller.signal).finally(() => {
        flights.delete(rid);
        onSettled();
      });
    },
    abort(rid, reason) {
      const controller = flights.get(rid);
      controller?.abort(reason);
      return controller !== undefined;
    },
    abortAll(reason) {
      for (const controller of flights.values()) controller.abort(reason);
    },
  };
}
