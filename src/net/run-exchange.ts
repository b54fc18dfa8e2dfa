import type { Dispatcher } from 'undici';
import { defined } from '../domain/defined.ts';
import type { CrawlStep } from '../domain/job-try.ts';
import type { TransientSet } from '../domain/transient-map.ts';
import { type BodySink, createBodySink } from './body-sink.ts';
import { HttpError, type HttpFailure, type HttpRequest, type HttpResponse } from './http-client.ts';
import { httpError, toHttpError } from './http-failures.ts';
import { toHeaderPairs } from './raw-headers.ts';
import { untilTaken } from './send-queue.ts';
import { createTimeLimits, type TimeLimit } from './time-limits.ts';

/** One request to one dispatcher. */
export interface Exchange {
  readonly dispatcher: Dispatcher;
  readonly options: Dispatcher.DispatchOptions;
  readonly request: HttpRequest;
  /** What is left of `request.timeoutMs`. */
  readonly timeoutMs: number;
  /** Holds, while the exchange is in progress, the function that aborts it. */
  readonly running: TransientSet<(cause: unknown) => void>;
  /** Whether a body that is cut short, or followed by other bytes, ends there. Default false. */
  readonly endsEarly?: boolean;
  /** See `HttpClientDeps.ready`. */
  readonly ready?: ((signal?: AbortSignal) => Promise<void> | undefined) | undefined;
  /**
   * Called when the request is about to be written to a connection. Returns what took how long of a
   * new connection, if that is known.
   */
  readonly onStart: () => readonly CrawlStep[];
  /**
   * Called when the dispatcher is done with the request, whatever the result; this may be after the
   * promise has settled. `accepted` is false when the dispatcher threw instead of taking it.
   */
  readonly onDone: (accepted: boolean) => void;
}

/** A failed exchange, and whether any part of a response had arrived. */
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

/** A request that was not written, because it must not be before `until` resolves. */
export class HeldBack extends Error {
  override readonly name = 'HeldBack';
  readonly until: Promise<void>;

  constructor(until: Promise<void>) {
    super('the request has to wait');
    this.until = until;
  }
}

/** Whether a response that has begun failed by its form, or ended before its end. */
export function isBroken(code: HttpFailure): boolean {
  return code === 'protocol_error' || code === 'decoding_failed' || code === 'connection_failed';
}

/** Limits of a body that nobody wants but that is read so that the connection can be reused. */
const DRAIN_BYTES = 16_384;
const DRAIN_MS = 1_000;

/**
 * Sends a request and gathers its response within the limits. Rejects with {@link ExchangeError} or
 * {@link HeldBack}.
 */
export function runExchange(exchange: Exchange): Promise<HttpResponse> {
  return new ExchangeRun(exchange).run();
}

/**
 * `running`: the promise is open. `draining`: it was resolved at the headers (`headersOnly`), and a
 * short body is still read, because the next request can then use the connection. `over`: nothing
 * that arrives counts any more.
 */
type State = 'running' | 'draining' | 'over';

/** The handler that undici reports the progress of one request to. */
class ExchangeRun implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  readonly #settled = Promise.withResolvers<HttpResponse>();
  readonly #limits = createTimeLimits();
  readonly #sink: BodySink;
  #state: State = 'running';
  #controller: Dispatcher.DispatchController | undefined;
  #connectLimit: TimeLimit | undefined;
  #headersLimit: TimeLimit | undefined;
  /** When the part of the exchange began that is in progress. */
  #since = performance.now();
  #steps: readonly CrawlStep[] = [];
  #sentAt: number | undefined;
  #head: Omit<HttpResponse, 'body'> | undefined;
  #receivedBytes = 0;
  /** The beginning of a body that is read in spite of `headersOnly`. */
  #excerpt: Buffer[] | undefined;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    this.#sink = createBodySink({
      maxBytes: exchange.request.maxBodyBytes,
      room: exchange.request.room,
      lenient: exchange.endsEarly,
      onComplete: () => this.#succeed(),
      onCut: exchange.request.cutsBody === true ? () => this.#cut() : undefined,
      onError: (error) => this.#fail(error),
    });
  }

  run(): Promise<HttpResponse> {
    const { request, dispatcher, options, onDone } = this.#exchange;
    if (request.signal?.aborted === true) {
      this.#onAbort();
      onDone(true);
      return this.#settled.promise;
    }
    request.signal?.addEventListener('abort', this.#onAbort, { once: true });
    this.#exchange.running.add(this.#abort);
    this.#startLimits();
    try {
      dispatcher.dispatch(options, this);
    } catch (error) {
      this.#fail(toHttpError(error));
      onDone(false);
    }
    return this.#settled.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const steps = this.#exchange.onStart();
    this.#steps = steps.length > 0 ? steps : this.#stepsNow('connection');
    this.#since = performance.now();
    // The time may have run out while the request waited for a connection.
    if (this.#state === 'over') {
      controller.abort(httpError('timeout'));
      return;
    }
    this.#connectLimit?.cancel();
    const until = this.#exchange.ready?.(this.#exchange.request.signal);
    if (until !== undefined) this.#holdBack(new HeldBack(until));
  }

  onRequestSent(): void {
    this.#sentAt = performance.now();
    this.#since = this.#sentAt;
    const { request, options } = this.#exchange;
    request.onSent?.();
    request.onBytes?.(requestBytes(options) + (request.body?.byteLength ?? 0));
    if (request.headersTimeoutMs === undefined || this.#isAnswered()) return;
    this.#startHeadersLimit();
    void untilTaken(options.body, {
      firstLookMs: request.headersTimeoutMs / 4,
      isOver: () => this.#isAnswered(),
      onReading: () => this.#headersLimit?.cancel(),
    }).then((extraMs) => {
      if (extraMs === undefined || this.#isAnswered()) return;
      this.#sentAt = performance.now();
      this.#startHeadersLimit(extraMs);
    });
  }

  onRequestUpgrade(
    ...[, , , socket]: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>
  ): void {
    socket.destroy();
    this.#fail(httpError('protocol_error'));
    this.#exchange.onDone(true);
  }

  onResponseStart(
    ...[controller, status, headers]: Parameters<
      NonNullable<Dispatcher.DispatchHandler['onResponseStart']>
    >
  ): void {
    // After 1xx the final response is still to come.
    if (status < 200 || this.#state === 'over') return;
    this.#headersLimit?.cancel();
    const now = performance.now();
    const answerMs = this.#sentAt === undefined ? 0 : now - this.#sentAt;
    this.#steps = this.#stepsNow('first_byte');
    this.#since = now;
    this.#head = { status, headers: toHeaderPairs(controller.rawHeaders ?? headers), answerMs };
    this.#exchange.request.onBytes?.(headBytes(this.#head.headers.flat()));
    const { headersOnly, excerpt } = this.#exchange.request;
    if (headersOnly === true) {
      if (excerpt?.isWanted(status) === true) {
        this.#excerpt = [];
        this.#limits.start(excerpt.timeoutMs, () => this.#endExcerpt());
      } else this.#drain(this.#head);
      return;
    }
    try {
      // Raw headers are a list for HTTP/1 only. The streams of HTTP/2 share the reads of their connection.
      this.#sink.start(this.#head.headers, controller, Array.isArray(controller.rawHeaders));
    } catch (error) {
      return this.#fail(toHttpError(error));
    }
    const bodyMs = this.#exchange.request.bodyTimeoutMs?.(this.#head);
    if (bodyMs !== undefined) this.#limits.start(bodyMs, () => this.#fail(httpError('timeout')));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    this.#exchange.request.onBytes?.(chunk.length);
    if (this.#state === 'running' && this.#excerpt !== undefined) {
      this.#excerpt.push(chunk);
      const { maxBytes = 0 } = this.#exchange.request.excerpt ?? {};
      if (this.#receivedBytes >= maxBytes) this.#endExcerpt();
    } else if (this.#state === 'running') this.#sink.write(chunk);
    if (this.#state === 'draining' && this.#receivedBytes > DRAIN_BYTES)
      this.#fail(httpError('body_too_large'));
  }

  onResponseEnd(): void {
    this.#endExcerpt();
    if (this.#state === 'running') this.#sink.end();
    else this.#end();
    this.#exchange.onDone(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#endExcerpt();
    const failure = toHttpError(error);
    const isPart = this.#receivedBytes > 0 && isBroken(failure.code);
    if (this.#exchange.endsEarly === true && isPart && this.#state === 'running') this.#sink.end();
    else this.#fail(failure);
    this.#exchange.onDone(true);
  }

  #startLimits(): void {
    const { request, timeoutMs } = this.#exchange;
    this.#limits.start(timeoutMs, () => this.#fail(httpError(this.#timeoutFailure())));
    const { connectTimeoutMs } = request;
    if (connectTimeoutMs === undefined) return;
    this.#connectLimit = this.#limits.start(connectTimeoutMs, () =>
      this.#fail(httpError('connect_timeout')),
    );
  }

  /** What the exchange was waiting for when its whole time ran out. */
  #timeoutFailure(): 'memory_busy' | 'connect_timeout' | 'timeout' {
    if (this.#sink.isWaitingForRoom) return 'memory_busy';
    return this.#controller === undefined ? 'connect_timeout' : 'timeout';
  }

  #startHeadersLimit(extraMs = 0): void {
    const { request, timeoutMs } = this.#exchange;
    this.#headersLimit?.cancel();
    this.#headersLimit = this.#limits.start((request.headersTimeoutMs ?? timeoutMs) + extraMs, () =>
      this.#fail(httpError('timeout')),
    );
  }

  /** The steps, with the part in progress unless it took less than a millisecond. */
  #stepsNow(part: string): readonly CrawlStep[] {
    const ms = Math.round(performance.now() - this.#since);
    return ms > 0 ? [...this.#steps, [part, ms]] : this.#steps;
  }

  #isAnswered(): boolean {
    return this.#state === 'over' || this.#head !== undefined;
  }

  readonly #abort = (cause: unknown): void => {
    this.#fail(new HttpError('aborted', 'aborted', { cause }));
  };

  readonly #onAbort = (): void => this.#abort(this.#exchange.request.signal?.reason);

  /** Resolves with what has been read of the body. */
  #endExcerpt(): void {
    if (this.#state !== 'running' || this.#excerpt === undefined || this.#head === undefined)
      return;
    const { maxBytes = 0 } = this.#exchange.request.excerpt ?? {};
    this.#drain(this.#head, Buffer.concat(this.#excerpt).subarray(0, maxBytes));
  }

  #drain(head: Omit<HttpResponse, 'body'>, body = this.#sink.take()): void {
    this.#end();
    this.#state = 'draining';
    this.#settled.resolve({ ...head, body });
    this.#limits.start(DRAIN_MS, () => this.#fail(httpError('timeout')));
  }

  #succeed(): void {
    if (this.#state !== 'running' || this.#head === undefined) return;
    this.#end();
    const { coded } = this.#sink;
    const steps = this.#stepsNow('body');
    const response = { ...this.#head, body: this.#sink.take(), steps, ...defined({ coded }) };
    // undici frees the connection in the next turn of the event loop. Resolved any earlier, a
    // caller whose next request goes to the same origin would open another connection.
    queueMicrotask(() => setImmediate(() => this.#settled.resolve(response)));
  }

  /** Succeeds with a part of the body; the server may never end it. */
  #cut(): void {
    this.#succeed();
    this.#controller?.abort(httpError('body_too_large'));
  }

  #fail(error: HttpError): void {
    if (this.#state === 'over') return;
    const isSettled = this.#state === 'draining';
    this.#end();
    this.#sink.destroy();
    const head = this.#head;
    if (!isSettled) {
      const part = this.#controller === undefined ? 'connection' : head ? 'body' : 'first_byte';
      const failure = new HttpError(error.code, error.message, {
        cause: error.cause,
        steps: this.#stepsNow(part),
        ...defined({ head }),
      });
      this.#settled.reject(new ExchangeError(failure, head !== undefined));
    }
    this.#controller?.abort(error);
  }

  /** Thrown here, the request is not written, and the connection stays usable. */
  #holdBack(held: HeldBack): never {
    this.#end();
    this.#sink.destroy();
    this.#settled.reject(held);
    throw held;
  }

  #end(): void {
    this.#state = 'over';
    this.#limits.cancelAll();
    this.#exchange.request.signal?.removeEventListener('abort', this.#onAbort);
    this.#exchange.running.delete(this.#abort);
  }
}

/** A line of a head has four bytes in addition to name and value. */
function headBytes(namesAndValues: readonly string[]): number {
  return namesAndValues.reduce((sum, text) => sum + text.length + 2, 0);
}

function requestBytes({ method, path, headers }: Dispatcher.DispatchOptions): number {
  return headBytes([method, path, ...(Array.isArray(headers) ? headers.map(String) : [])]);
}
