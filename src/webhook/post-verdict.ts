import type { EndpointAnswer } from '../domain/delivery.ts';
import { parseRetryAfter } from '../domain/retry-after.ts';
import type { HttpFailure } from '../net/http-client.ts';
import type { PostAnswer } from './post.ts';

/** The statuses that acknowledge a delivery. */
export const ACKNOWLEDGED: ReadonlySet<number> = new Set([200, 201, 204]);

const OVERLOAD_STATUSES: ReadonlySet<number> = new Set([429, 503]);
const OVERLOAD_FAILURES: ReadonlySet<HttpFailure> = new Set([
  'connection_failed',
  'connect_timeout',
  'name_not_found',
  'name_lookup_failed',
  'timeout',
]);

/** Whether nothing was sent, because this process had no socket. */
export function lacksSocket(answer: PostAnswer): boolean {
  return answer.kind === 'failed' && answer.error.code === 'no_socket';
}

/** How much more the endpoint can take, as far as its answer at `now` shows. */
export function toEndpointAnswer(answer: PostAnswer, now: Date): EndpointAnswer {
  if (answer.kind === 'failed') {
    if (lacksSocket(answer)) return { kind: 'no_socket' };
    return { kind: OVERLOAD_FAILURES.has(answer.error.code) ? 'overloaded' : 'other' };
  }
  const { status, answerMs } = answer;
  if (ACKNOWLEDGED.has(status)) return { kind: 'acknowledged', answerMs };
  if (!OVERLOAD_STATUSES.has(status)) return { kind: 'other' };
  const retryAfterMs = parseRetryAfter(answer.retryAfter, now);
  return { kind: 'overloaded', ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}

/** Why a delivery failed, for the log of its attempts; empty when it was acknowledged. */
export function deliveryError(
  answer: PostAnswer,
  durationMs: number,
  limits: { readonly timeoutMs: number; readonly ackTimeoutMs: number },
): string {
  if (answer.kind === 'failed') {
    if (answer.error.code !== 'timeout') return failureText(answer);
    return durationMs < limits.timeoutMs
      ? `timeout: no answer within ${limits.ackTimeoutMs} ms after the body was sent`
      : 'timeout: the body was not taken in time';
  }
  return ACKNOWLEDGED.has(answer.status) ? '' : statusText(answer.status);
}

/** Why a probe failed; empty on any 2xx. */
export function probeError(answer: PostAnswer): string {
  if (answer.kind === 'failed') return failureText(answer);
  return answer.status >= 200 && answer.status < 300 ? '' : statusText(answer.status);
}

function statusText(status: number): string {
  return `status ${status}${status >= 300 && status < 400 ? ', redirects are not followed' : ''}`;
}

function failureText({ error }: Extract<PostAnswer, { kind: 'failed' }>): string {
  return `${error.code}: ${error.message}`;
}
