import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import type { ActivityService } from '../../gen/queuedcrawler/v1/activity_service_pb.ts';
import type { StorageService } from '../../gen/queuedcrawler/v1/storage_service_pb.ts';
import { type CrawledPage, unpackResult } from './crawled-page.ts';
import { createLoopCall } from './loop-calls.ts';
import { createPatience } from './patience.ts';
import type { ServiceClient } from './service-clients.ts';

/** The service's limit of one bulk read. */
const MAX_RIDS = 100;
/** `rid`s that are waited for at a time; further ones stay in the source. */
const WINDOW = 1_000;
/** The waits between two rounds in which nothing came, from the first to the longest. */
const POLL_MS = { first: 100, longest: 2_000 } as const;
/** `rid`s that are looked for in the queues after a round in which nothing came. */
const SOUGHT_AT_ONCE = 10;

/** How results are waited for. */
export interface ResultOptions {
  /** Removes results from storage after the caller has taken them. Default false. */
  readonly remove?: boolean;
  /**
   * How long to wait without one result coming, in milliseconds; then the loop throws
   * DEADLINE_EXCEEDED. The time that the caller takes is not in it. Default 10 minutes.
   */
  readonly patienceMs?: number;
  /**
   * Called with each `rid` that is neither queued nor stored, so that no result will come; it is no
   * longer waited for. Without it these are waited for like the others.
   */
  readonly onMissing?: (rid: string) => void;
  /** Ends the loop: it throws the signal's reason. */
  readonly signal?: AbortSignal;
}

type Storage = Pick<ServiceClient<typeof StorageService>, 'bulkGetResults' | 'bulkDeleteResults'>;
type Activity = Pick<ServiceClient<typeof ActivityService>, 'findRid'>;

/** Yields results as they come; see CrawlerClient.results. */
export async function* waitForResults(
  { storage, activity }: { readonly storage: Storage; readonly activity: Activity },
  rids: Iterable<string> | AsyncIterable<string>,
  options: ResultOptions = {},
): AsyncGenerator<CrawledPage, void, undefined> {
  const { remove = false, patienceMs = 600_000, onMissing } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, ...(options.signal ? [options.signal] : [])]);
  const pending = readInto(rids, signal, remove);
  const patience = createPatience(patienceMs);
  const callService = createLoopCall(patienceMs, signal);
  let waitMs: number = POLL_MS.first;
  /** `rid`s that were found since they were last all found. */
  let found = new Set<string>();
  let missing: string[] = [];

  /** One look for each pending `rid`; yields what is there. */
  async function* round(): AsyncGenerator<CrawledPage, void, undefined> {
    const asked = [...pending.rids];
    while (asked.length > 0) {
      const part = asked.splice(0, MAX_RIDS);
      const { results, deferredRids } = await callService((call) =>
        storage.bulkGetResults({ rids: part }, call),
      );
      asked.unshift(...deferredRids);
      for (const result of results) {
        patience.renew();
        waitMs = POLL_MS.first;
        yield await unpackResult(result);
        pending.take(result.rid, { isResult: true });
      }
      const taken = results.map(({ rid }) => rid);
      if (remove && taken.length > 0) {
        await callService((call) => storage.bulkDeleteResults({ rids: taken }, call));
      }
    }
  }

  /** Looks for some in the queues; returns those that are not there. */
  async function seek(): Promise<string[]> {
    const sought = [...pending.rids].filter((rid) => !found.has(rid)).slice(0, SOUGHT_AT_ONCE);
    if (sought.length === 0) found = new Set();
    for (const rid of sought) found.add(rid);
    const isThere = await Promise.all(
      sought.map((rid) =>
        callService((call) => activity.findRid({ rid }, call)).then(
          ({ job, result }) => job !== undefined || result !== undefined,
          (error: unknown) => {
            if (ConnectError.from(error).code !== Code.NotFound) throw error;
            return false;
          },
        ),
      ),
    );
    return sought.filter((_, at) => isThere[at] === false);
  }

  try {
    while (await pending.some()) {
      yield* round();
      // The round has looked once more: a result may have been stored during the search.
      for (const rid of missing) if (pending.take(rid)) onMissing?.(rid);
      missing = [];
      if (pending.rids.size === 0) {
        // The source may take its time to the next one.
        patience.renew();
        continue;
      }
      if (onMissing !== undefined && waitMs > POLL_MS.first) missing = await seek();
      if (patience.isOver()) {
        const message = `no result came in ${patienceMs} ms; ${pending.rids.size} are missing`;
        throw new ConnectError(message, Code.DeadlineExceeded);
      }
      await sleep(waitMs, undefined, { signal });
      waitMs = Math.min(waitMs * 2, POLL_MS.longest);
    }
  } finally {
    ended.abort();
  }
}

/**
 * Reads the source during the waiting, at most a window ahead: it may be a push in progress. With
 * `isOnce`, a `rid` whose result was taken is not waited for again.
 */
function readInto(
  source: Iterable<string> | AsyncIterable<string>,
  signal: AbortSignal,
  isOnce: boolean,
) {
  const rids = new Set<string>();
  const taken = new Set<string>();
  let isDone = false;
  let failure: { readonly error: unknown } | undefined;
  let changed = Promise.withResolvers<void>();
  const change = (): void => {
    changed.resolve();
    changed = Promise.withResolvers<void>();
  };
  signal.addEventListener('abort', change, { once: true });
  const read = async (): Promise<void> => {
    for await (const rid of source) {
      if (taken.has(rid)) continue;
      rids.add(rid);
      change();
      while (rids.size >= WINDOW && !signal.aborted) await changed.promise;
      if (signal.aborted) break;
    }
  };
  read()
    .catch((error: unknown) => {
      failure = { error };
    })
    .finally(() => {
      isDone = true;
      change();
    });
  return {
    rids: rids as ReadonlySet<string>,
    /** Returns whether it was waited for. */
    take(rid: string, { isResult = false } = {}): boolean {
      const isPending = rids.delete(rid);
      if (isOnce && isResult) taken.add(rid);
      change();
      return isPending;
    },
    /** Waits for a `rid`; resolves with false when no more will come. */
    async some(): Promise<boolean> {
      while (rids.size === 0 && !isDone && !signal.aborted) await changed.promise;
      signal.throwIfAborted();
      if (failure !== undefined) throw failure.error;
      return rids.size > 0;
    },
  };
}
