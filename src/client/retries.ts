import { setTimeout as sleep } from 'node:timers/promises';
import type { DescMethod, Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import {
  Code,
  ConnectError,
  createContextKey,
  createContextValues,
  type Interceptor,
} from '@connectrpc/connect';
import { codeOf, describeFailure } from './call-failure.ts';
import type { RetryOptions } from './retry-options.ts';

const isSingleKey = createContextKey(false, { description: 'the call is not repeated' });

/** For calls whose caller handles failures by itself. */
export const notRepeated = () => createContextValues().set(isSingleKey, true);

/** Each attempt has twice the time of the one before, up to this many times that of the first. */
const MOST_TIMES = 64;
const attemptKey = createContextKey(0, {
  description: 'milliseconds of the first attempt; 0 for no limit',
});

/** For calls of which the first attempt is to end after a time, and each further one after twice that of the last. */
export const limitAttempts = (attemptMs: number) =>
  createContextValues().set(attemptKey, attemptMs);

/**
 * Repeats unary calls: what the service refused for now with RetryInfo, since such a call has
 * changed nothing. When the connection or the service was lost, it also repeats calls that did not
 * get there, and those that may be repeated (reads, batches with a `request_id`). Streams are not
 * repeated.
 */
export function createRetries(options: RetryOptions = {}): Interceptor {
  const { attempts = 7, firstDelayMs = 200, maxDelayMs = 10_000 } = options;
  return (next) => async (request) => {
    if (request.stream || request.contextValues.get(isSingleKey)) return next(request);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await attemptWithin(
          // A large reply over a slow connection takes longer.
          request.contextValues.get(attemptKey) * Math.min(2 ** (attempt - 1), MOST_TIMES),
          request.signal,
          (signal) => next({ ...request, signal }),
        );
      } catch (error) {
        if (attempt >= attempts || request.signal.aborted) throw error;
        const named = refusalDelay(error);
        const isSafe = isUntouched(error) || mayRepeat(request.method, request.message);
        if (named === undefined && !(isLost(error) && isSafe)) throw error;
        const own = firstDelayMs * 2 ** (attempt - 1);
        // Several clients that were refused at once do not come back at once.
        const delayMs = Math.min((named ?? own) * (1 + Math.random() / 4), maxDelayMs);
        options.onRetry?.(error, delayMs);
        await sleep(delayMs, undefined, { signal: request.signal }).catch(() => {
          throw error;
        });
      }
    }
  };
}

/** Makes one attempt, with a deadline of its own. */
async function attemptWithin<Reply>(
  attemptMs: number,
  signal: AbortSignal,
  attempt: (signal: AbortSignal) => Promise<Reply>,
): Promise<Reply> {
  if (attemptMs === 0) return attempt(signal);
  const late = new AbortController();
  const timer = setTimeout(() => {
    late.abort(new ConnectError('the service did not answer', Code.DeadlineExceeded));
  }, attemptMs);
  try {
    return await attempt(AbortSignal.any([signal, late.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** How long to wait, in milliseconds, when the service refused a call for now. */
export function refusalDelay(error: unknown): number | undefined {
  const isRefusal = ConnectError.from(error).code === Code.ResourceExhausted;
  return isRefusal ? describeFailure(error).retryAfterMs : undefined;
}

/** Whether the service went away or could not answer; what it did of the call is not known. */
export function isLost(error: unknown): boolean {
  const { code } = ConnectError.from(error);
  // Nobody has canceled the call: its stream ended with the connection.
  const lost = [Code.Unavailable, Code.Aborted, Code.Canceled, Code.DeadlineExceeded];
  if (lost.includes(code)) return true;
  return /^(ERR_HTTP2_|EPIPE$)/.test(nodeCode(error)) || isUntouched(error);
}

/** The call did not get as far as the service: HTTP/2 says so of refused streams. */
function isUntouched(error: unknown): boolean {
  const { cause } = ConnectError.from(error);
  if (nodeCode(error) === 'ECONNREFUSED') return true;
  return cause instanceof Error && cause.message.includes('NGHTTP2_REFUSED_STREAM');
}

function nodeCode(error: unknown): string {
  return codeOf(ConnectError.from(error).cause);
}

function mayRepeat({ idempotency }: DescMethod, message: Message): boolean {
  if (idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN) return true;
  if ('requestId' in message) return message.requestId !== '';
  return 'autoDelete' in message && message.autoDelete === false;
}
