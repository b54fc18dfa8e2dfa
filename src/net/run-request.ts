import type { Dispatcher } from 'undici';
import { createByteCollector } from './byte-collector.ts';
import {
  type ContentDecoder,
  createContentDecoder,
  parseContentEncoding,
} from './content-decoder.ts';
import {
  HttpError,
  type HttpFailure,
  type HttpRequest,
  type HttpResponse,
  type Room,
} from './http-client.ts';
import { httpError, toHttpError } from './http-failures.ts';
import { toHeaderPairs } from './raw-headers.ts';
import { untilTaken } from './send-queue.ts';

/** One request to one dispatcher. */
export interface Exchange {
  readonly dispatcher: Dispatcher;
  readonly options: Dispatcher.DispatchOptions;
  readonly request: HttpRequest;
  /** What is left of `request.timeoutMs`. */
  readonly timeoutMs: number;
  /** The request is about to be written to a connection. */
  readonly onStart: () => void;
  /**
   * The dispatcher is done with it, whatever the end; maybe after the promise has settled. `taken`
   * is false when it threw instead of taking the request.
   */
  readonly onDone: (taken: boolean) => void;
}

/** A failure, and whether anything of an answer had arrived. */
export class ExchangeError extends Error {
  override readonly name = 'ExchangeError';
  readonly failure: HttpError;
  readonly answered: boolean;

  constructor(failure: HttpError, answered: boolean) {
    super(failure.message, { cause: failure });
    this.failure = failure;
    this.answered = answered;
  }
}

/**
 * After `headersOnly`, a rest this short is read to its end, because the next request can then use
 * the connection.
 */
const DRAIN = { maxBytes: 16_384, timeoutMs: 1_000 } as const;

/**
 * Sends a request and gathers its answer within the limits. Rejects with {@link ExchangeError}.
 * Timers that end it let the sockets be read once more first: an answer that had arrived in time
 * counts, even when the process was too busy to look at it.
 */
export function runExchange(exchange: Exchange): Promise<HttpResponse> {
  const { request, timeoutMs } = exchange;
  const { maxBodyBytes, signal } = request;
  const settled = Promise.withResolvers<HttpResponse>();
  const timers = new Set<NodeJS.Timeout>();
  const body = createByteCollector(maxBodyBytes);
  let controller: Dispatcher.DispatchController | undefined;
  let decoder: ContentDecoder | undefined;
  let head: Omit<HttpResponse, 'body'> | undefined;
  let receivedBytes = 0;
  let sentAt: number | undefined;
  let responseEnded = false;
  let decoderEnded = false;
  let waitsForRoom = false;
  let state: 'running' | 'draining' | 'over' = 'running';

  function limit(ms: number, failure: () => HttpFailure): NodeJS.Timeout {
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (timers.has(timer)) fail(httpError(failure()));
      });
    }, ms);
    timers.add(timer);
    return timer;
  }

  function lift(timer: NodeJS.Timeout | undefined): void {
    clearTimeout(timer);
    if (timer !== undefined) timers.delete(timer);
  }

  function stop(): void {
    for (const timer of timers) lift(timer);
    signal?.removeEventListener('abort', onAbort);
  }

  function fail(error: HttpError): void {
    if (state === 'over') return;
    const draining = state === 'draining';
    state = 'over';
    stop();
    decoder?.destroy();
    if (!draining) settled.reject(new ExchangeError(withHead(error), head !== undefined));
    controller?.abort(error);
  }

  function withHead(error: HttpError): HttpError {
    if (head === undefined) return error;
    return new HttpError(error.code, error.message, { cause: error.cause, head });
  }

  function succeed(): void {
    if (state !== 'running' || head === undefined) return;
    state = 'over';
    stop();
    const answer = { ...head, body: body.take() };
    // undici takes up the connection again in the next turn of the event loop; a caller whose next
    // request goes to the same origin would otherwise open another.
    queueMicrotask(() => setImmediate(() => settled.resolve(answer)));
  }

  function onAbort(): void {
    fail(new HttpError('aborted', 'aborted', { cause: signal?.reason }));
  }

  function keep(chunk: Uint8Array): void {
    if (state !== 'running') return;
    if (!body.push(chunk)) fail(httpError('body_too_large'));
    else if (!waitsForRoom && body.length > (request.room?.bytes ?? Number.POSITIVE_INFINITY)) {
      void waitForRoom(request.room as Room);
    }
  }

  /**
   * Holds the answer back until there is room for all that may come of it: asked once, it cannot
   * wait for others that wait.
   */
  async function waitForRoom(room: Room): Promise<void> {
    waitsForRoom = true;
    controller?.pause();
    decoder?.pause();
    const length = decoder === undefined ? Number(lastOf('content-length')) : Number.NaN;
    await room.grow(length > 0 ? Math.min(length, maxBodyBytes) : maxBodyBytes);
    waitsForRoom = false;
    if (state !== 'running') return;
    decoder?.resume();
    controller?.resume();
  }

  function lastOf(name: string): string | undefined {
    return head?.headers.findLast(([each]) => each === name)?.[1];
  }

  function readOn(): void {
    if (!waitsForRoom) controller?.resume();
  }

  function startDecoding(encodings: readonly string[]): void {
    decoder = createContentDecoder(encodings, maxBodyBytes, {
      onData: keep,
      onDrain: readOn,
      // Bytes may follow the end of the encoded data; they count, and the exchange lasts until
      // theirs.
      onEnd() {
        decoderEnded = true;
        if (responseEnded) succeed();
        else readOn();
      },
      onError: fail,
    });
  }

  limit(timeoutMs, () => {
    if (waitsForRoom) return 'memory_busy';
    return controller === undefined ? 'connect_timeout' : 'timeout';
  });
  const connectTimer =
    request.connectTimeoutMs === undefined
      ? undefined
      : limit(request.connectTimeoutMs, () => 'connect_timeout');
  let headersTimer: NodeJS.Timeout | undefined;

  const isAnswered = (): boolean => state === 'over' || head !== undefined;

  function startHeadersTimer(extraMs = 0): void {
    lift(headersTimer);
    headersTimer = limit((request.headersTimeoutMs ?? timeoutMs) + extraMs, () => 'timeout');
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(given) {
      controller = given;
      exchange.onStart();
      if (state === 'over') {
        // Its time was up while it waited for a connection.
        given.abort(httpError('timeout'));
        return;
      }
      lift(connectTimer);
    },
    onRequestSent() {
      sentAt = performance.now();
      if (request.headersTimeoutMs === undefined || isAnswered()) return;
      startHeadersTimer();
      const firstLookMs = request.headersTimeoutMs / 4;
      void untilTaken(exchange.options.body, {
        firstLookMs,
        isOver: isAnswered,
        onReading: () => lift(headersTimer),
      }).then((extraMs) => {
        if (extraMs === undefined || isAnswered()) return;
        sentAt = performance.now();
        startHeadersTimer(extraMs);
      });
    },
    onRequestUpgrade(_controller, _status, _headers, socket) {
      socket.destroy();
      fail(httpError('protocol_error'));
      exchange.onDone(true);
    },
    onResponseStart(given, status, headers) {
      if (status < 200) return;
      lift(headersTimer);
      const answerMs = sentAt === undefined ? 0 : performance.now() - sentAt;
      head = { status, headers: toHeaderPairs(given.rawHeaders ?? headers), answerMs };
      if (request.headersOnly === true) {
        state = 'draining';
        settled.resolve({ ...head, body: body.take() });
        stop();
        limit(DRAIN.timeoutMs, () => 'timeout');
        return;
      }
      if (request.decode === false) return;
      try {
        const encodings = parseContentEncoding(
          head.headers
            .filter(([name]) => name === 'content-encoding')
            .map(([, value]) => value)
            .join(','),
        );
        if (encodings.length > 0) startDecoding(encodings);
      } catch (error) {
        fail(toHttpError(error, false));
      }
    },
    onResponseData(given, chunk) {
      if (state === 'over') return;
      receivedBytes += chunk.length;
      if (receivedBytes > (state === 'draining' ? DRAIN.maxBytes : maxBodyBytes)) {
        fail(httpError('body_too_large'));
      } else if (state === 'draining') {
        return;
      } else if (decoder === undefined) {
        keep(chunk);
      } else if (!decoderEnded && !decoder.write(chunk)) {
        given.pause();
      }
    },
    onResponseEnd() {
      if (state === 'draining') {
        state = 'over';
        stop();
      } else if (state === 'running') {
        responseEnded = true;
        if (decoder === undefined || decoderEnded) succeed();
        else decoder.end();
      }
      exchange.onDone(true);
    },
    onResponseError(_controller, error) {
      fail(toHttpError(error, false));
      exchange.onDone(true);
    },
  };

  if (signal?.aborted === true) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  if (state === 'running') {
    try {
      exchange.dispatcher.dispatch(exchange.options, handler);
    } catch (error) {
      fail(toHttpError(error, false));
      exchange.onDone(false);
    }
  } else exchange.onDone(true);
  return settled.promise;
}
