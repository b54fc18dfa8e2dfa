import { createTransientMap } from '../domain/transient-map.ts';

/** Work in flight, by `rid`, each with its own abort. */
export interface InFlight {
  readonly size: number;
  /** Starts `work`, which leaves the set when it resolves or rejects. */
  start(rid: string, work: (signal: AbortSignal) => Promise<void>): void;
  abortAll(reason: WorkAborted): void;
}

/** Why work was aborted: the outcome is `dropped`, or the job is `released`, given back untried. */
export class WorkAborted extends Error {
  override readonly name = 'WorkAborted';
  readonly end: 'dropped' | 'released';

  constructor(end: 'dropped' | 'released') {
    super(`work was ${end}`);
    this.end = end;
  }
}

/** Makes an empty set. `onSettled` is called each time one has left it. */
export function createInFlight(onSettled: () => void): InFlight {
  const controllers = createTransientMap<string, AbortController>();
  return {
    get size() {
      return controllers.size;
    },
    start(rid, work) {
      const controller = new AbortController();
      controllers.set(rid, controller);
      void work(controller.signal).finally(() => {
        controllers.delete(rid);
        onSettled();
      });
    },
    abortAll(reason) {
      for (const controller of controllers.values()) controller.abort(reason);
    },
  };
}
