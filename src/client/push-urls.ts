import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type {
  PushError,
  PushItemSchema,
  PushResult,
  PushService,
} from '../../gen/queuedcrawler/v1/push_service_pb.ts';
import { createLoopCall } from './loop-calls.ts';
import { createPatience } from './patience.ts';
import type { ServiceClient } from './service-clients.ts';
import { readUntil } from './stop-at.ts';

/** The service's limit of one batch. */
const MAX_BATCH_ITEMS = 1_000;
/** Of 64 characters of a `request_id`; the rest numbers batches and rounds. */
export const MAX_RUN_ID_LENGTH = 40;

/** A URL, or a URL with its parameters. */
export type UrlToPush = string | MessageInitShape<typeof PushItemSchema>;

/** How URLs are pushed. */
export interface PushOptions {
  /** URLs in one call, 1 to 1,000. Default 500. */
  readonly batchSize?: number;
  /** Calls at a time. Default 4. */
  readonly concurrency?: number;
  /**
   * Names this run, up to 40 characters. A run that is repeated within 24 hours with the same name,
   * source and `batchSize` gets the `rid`s of the first and queues only what that did not. Default a
   * name of its own.
   */
  readonly runId?: string;
  /**
   * How long to continue without one URL accepted while rate or queues are full, in milliseconds; then
   * the rest comes back with its error. The time that the source takes is not in it. Default an hour.
   */
  readonly patienceMs?: number;
  /** Called before each wait for rate or room. */
  readonly onWait?: (error: PushError, delayMs: number) => void;
  /** Ends the loop: it throws the signal's reason. */
  readonly signal?: AbortSignal;
}

/** What became of one URL: `rid`, or `error`. */
export interface Pushed {
  /** Its place in the source, from 0. */
  readonly index: number;
  readonly item: UrlToPush;
  readonly rid?: string;
  /** Whether the `rid` is that of an earlier push with the same unique key. */
  readonly duplicate?: boolean;
  /** Its parameters that have no effect, because they need the JavaScript token; absent without any. */
  readonly ignoredParameters?: readonly string[];
  readonly error?: PushError;
}

type Pusher = Pick<ServiceClient<typeof PushService>, 'pushBatch'>;

/** Pushes URLs in batches; see CrawlerClient.push. */
export async function* pushUrls(
  pusher: Pusher,
  crawler: string,
  urls: Iterable<UrlToPush> | AsyncIterable<UrlToPush>,
  options: PushOptions = {},
): AsyncGenerator<Pushed, void, undefined> {
  const { batchSize = 500, concurrency = 4, runId = randomUUID() } = options;
  assertWithin('batchSize', batchSize, MAX_BATCH_ITEMS);
  assertWithin('concurrency', concurrency, 100);
  assertWithin('the length of runId', runId.length, MAX_RUN_ID_LENGTH);
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, ...(options.signal ? [options.signal] : [])]);
  const push = createBatchPusher(pusher, crawler, { ...options, runId, signal });
  const inFlight: Promise<BatchOutcome>[] = [];
  let failure: Failure | undefined;

  async function* oldest(): AsyncGenerator<Pushed, void, undefined> {
    const outcome = await inFlight.shift();
    options.signal?.throwIfAborted();
    failure ??= outcome?.failure;
    yield* outcome?.pushed ?? [];
  }

  try {
    let index = 0;
    try {
      for await (const items of chunks(readUntil(signal, urls), batchSize)) {
        inFlight.push(push(items, index, index / batchSize));
        index += items.length;
        if (inFlight.length >= concurrency) yield* oldest();
        if (failure !== undefined) break;
      }
    } catch (error) {
      failure = { error };
    }
    // Also after a failure: the caller gets the `rid`s of what was accepted.
    while (inFlight.length > 0) yield* oldest();
    if (failure !== undefined) throw failure.error;
  } finally {
    ended.abort();
  }
}

interface Failure {
  readonly error: unknown;
}

interface BatchOutcome {
  readonly pushed: readonly Pushed[];
  /** What ended the batch before each of its items had a result. */
  readonly failure?: Failure;
}

/** Pushes one batch, as often as it takes for all its items to be accepted or refused for good. */
function createBatchPusher(
  pusher: Pusher,
  crawler: string,
  options: PushOptions & { readonly runId: string; readonly signal: AbortSignal },
) {
  const { runId, signal, patienceMs = 3_600_000, onWait } = options;
  const patience = createPatience(patienceMs);
  const callService = createLoopCall(patienceMs, signal);
  // All batches share the service's limits, so all of them wait.
  let pausedUntil = 0;
  let hasFailed = false;

  async function pause(error: PushError): Promise<void> {
    const now = performance.now();
    pausedUntil = Math.max(pausedUntil, now + error.retryAfterMs);
    onWait?.(error, pausedUntil - now);
    await sleep(pausedUntil - now, undefined, { signal });
  }

  /** Adds to `done` what has a result. */
  async function pushBatch(
    items: readonly UrlToPush[],
    first: number,
    batch: number,
    done: Pushed[],
  ): Promise<void> {
    let waiting = items.map((item, offset) => ({ item, index: first + offset }));
    // How many are worth sending: few when few were accepted before.
    let width = waiting.length;
    let round = 0;
    while (waiting.length > 0 && !hasFailed) {
      const sent = waiting.slice(0, width);
      const request = {
        crawler,
        items: sent.map(({ item }) => (typeof item === 'string' ? { url: item } : item)),
        requestId: `${runId}:${batch}:${round}`,
      };
      const { results } = await callService((call) => pusher.pushBatch(request, call));
      const again: typeof waiting = [];
      const settled: Pushed[] = [];
      let isTaken = false;
      let refusal: PushError | undefined;
      for (const [at, place] of sent.entries()) {
        const result: PushResult | undefined = results[at];
        if (result?.error === undefined) {
          patience.renew();
          const { rid = '', duplicate = false, ignoredParameters = [] } = result ?? {};
          isTaken = true;
          settled.push({
            ...place,
            rid,
            ...(duplicate ? { duplicate } : {}),
            ...(ignoredParameters.length === 0 ? {} : { ignoredParameters }),
          });
        } else if (result.error.retryAfterMs > 0 && !patience.isOver()) {
          refusal = result.error;
          again.push(place);
        } else settled.push({ ...place, error: result.error });
      }
      // The service keeps no reply to a call of which it took nothing. So the same call is made again, or
      // a repeated run would send other items under its name. Duplicates are taken.
      if (refusal === undefined || isTaken) {
        done.push(...settled);
        width = Math.max(1, 2 * settled.length);
        waiting = [...again, ...waiting.slice(sent.length)];
        round += 1;
      }
      if (refusal !== undefined) await pause(refusal);
    }
  }

  return async (...batch: [UrlToPush[], number, number]): Promise<BatchOutcome> => {
    const done: Pushed[] = [];
    const failure = await pushBatch(...batch, done).then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    // The others end with their current call.
    if (failure !== undefined) hasFailed = true;
    const pushed = done.sort((left, right) => left.index - right.index);
    return failure === undefined ? { pushed } : { pushed, failure };
  };
}

async function* chunks<Item>(
  source: Iterable<Item> | AsyncIterable<Item>,
  size: number,
): AsyncGenerator<Item[], void, undefined> {
  let chunk: Item[] = [];
  for await (const item of source) {
    chunk.push(item);
    if (chunk.length < size) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

function assertWithin(what: string, value: number, most: number): void {
  if (!Number.isInteger(value) || value < 1 || value > most) {
    throw new RangeError(`${what} must be a whole number from 1 to ${most}`);
  }
}
