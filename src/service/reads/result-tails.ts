import { raceAbort } from '../../domain/race-abort.ts';
import type { ResultPlace, ResultSelection, ResultStore } from '../../store/store.ts';

/** How soon new results are looked for, in milliseconds: at first, and at last when none come. */
const MIN_WAIT_MS = 200;
const MAX_WAIT_MS = 2_000;

/** The ends of the orders of results, where readers wait for more. */
export interface ResultTails {
  /**
   * Resolves when there are results behind `place`, or after `timeoutMs`. Rejects with the signal's
   * reason, and as the store does.
   */
  grown(
    selection: ResultSelection,
    place: ResultPlace,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<void>;
}

interface Waiting extends PromiseWithResolvers<void> {
  readonly place: ResultPlace;
}

interface Tail {
  readonly waiting: Set<Waiting>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Makes the tails of a process: one small query at a time for the same selection of results, however
 * many streams wait for them, and none while nobody waits.
 */
export function createResultTails(results: Pick<ResultStore, 'following'>): ResultTails {
  const tails = new Map<string, Tail>();

  function watch(selection: ResultSelection, tail: Tail, waitMs: number): void {
    tail.timer = setTimeout(() => {
      void look(selection, tail).then(() => {
        if (tail.waiting.size > 0) watch(selection, tail, Math.min(waitMs * 1.5, MAX_WAIT_MS));
      });
    }, waitMs);
  }

  async function look(selection: ResultSelection, { waiting }: Tail): Promise<void> {
    // Who waits has read to the end, so the places hardly differ.
    const [first, ...others] = [...waiting].map(({ place }) => place);
    if (first === undefined) return;
    const lowest = others.reduce((low, place) => (place.seq < low.seq ? place : low), first);
    try {
      const { results: found } = await results.following(selection, lowest, 1);
      if (found.length > 0) for (const each of waiting) each.resolve();
    } catch (error) {
      for (const each of waiting) each.reject(error);
    }
  }

  return {
    async grown(selection, place, timeoutMs, signal) {
      const { accountId, tokenType, crawlerId = '', batchId = '' } = selection;
      const key = `${accountId}/${tokenType}/${crawlerId}/${batchId}`;
      let tail = tails.get(key);
      if (tail === undefined) {
        tail = { waiting: new Set(), timer: undefined };
        tails.set(key, tail);
        watch(selection, tail, MIN_WAIT_MS);
      }
      const own: Waiting = { place, ...Promise.withResolvers<void>() };
      tail.waiting.add(own);
      const timeout = setTimeout(own.resolve, timeoutMs);
      try {
        await raceAbort(own.promise, signal);
      } finally {
        clearTimeout(timeout);
        tail.waiting.delete(own);
        if (tail.waiting.size === 0) {
          clearTimeout(tail.timer);
          if (tails.get(key) === tail) tails.delete(key);
        }
      }
    },
  };
}
