import { createTransientSet } from '../domain/transient-map.ts';
import { type AnyResponse, breakOff } from '../http/node-http.ts';

/** Disconnects clients that do not read the end of their reply. */
export interface StalledReplies {
  /** Watches a response until it is closed. */
  track(response: AnyResponse): void;
  stop(): void;
}

/**
 * Makes the watch. All but the last piece of a reply is timed where it is written; the last piece
 * may stay in the connection for between `stallMs` and twice as long.
 */
export function createStalledReplies(stallMs: number): StalledReplies {
  const open = createTransientSet<AnyResponse>();
  let endedBefore = new Set<AnyResponse>();
  const timer = setInterval(() => {
    const ended = new Set<AnyResponse>();
    for (const response of open.values()) {
      if (!response.writableEnded) continue;
      if (endedBefore.has(response)) breakOff(response);
      else ended.add(response);
    }
    endedBefore = ended;
  }, stallMs).unref();

  return {
    track(response) {
      open.add(response);
      response.once('close', () => {
        open.delete(response);
        endedBefore.delete(response);
      });
    },
    stop: () => clearInterval(timer),
  };
}
