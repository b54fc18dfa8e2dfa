/** Work under way, by `rid`, each with its own abort. */
export interface Flights {
  readonly size: number;
  /** Starts `work`; it leaves the set when it settles, whatever the end. */
  start(rid: string, work: (signal: AbortSignal) => Promise<void>): void;
  /** Aborts one; false when it is not under way. */
  abort(rid: string, reason: FlightAbort): boolean;
  abortAll(reason: FlightAbort): void;
}

/** Why work was aborted: `dropped` leaves no trace, `released` gives the job back untried. */
export class FlightAbort extends Error {
  override readonly name = 'FlightAbort';
  readonly end: 'dropped' | 'released';

  constructor(end: 'dropped' | 'released') {
    super(`work was ${end}`);
    this.end = end;
  }
}

/** Makes an empty set. `onLanding` is called after each end. */
export function createFlights(onLanding: () => void): Flights {
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
        onLanding();
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
