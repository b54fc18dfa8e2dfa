import { type HttpClient, HttpError, type HttpRequest } from '../net/http-client.ts';
import { ACKNOWLEDGED } from './post-verdict.ts';

/** The endpoint's answer to a POST, or the reason why it is missing. */
export type PostAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** From the last byte of the body to the answer. */
      readonly answerMs: number;
      /** The header, as it was sent. */
      readonly retryAfter: string | undefined;
      /** The beginning of the body of an answer that acknowledges nothing. */
      readonly excerpt: string | undefined;
    }
  | { readonly kind: 'failed'; readonly error: HttpError };

/** What one POST is sent with. */
export type PostRequest = Pick<
  HttpRequest,
  'url' | 'headers' | 'body' | 'timeoutMs' | 'headersTimeoutMs' | 'claimant'
>;

/**
 * Bytes of the answer of an endpoint that failed that are read: enough for a message, and few enough
 * to keep.
 */
const EXCERPT = {
  isWanted: (status: number) => !ACKNOWLEDGED.has(status),
  maxBytes: 2_048,
  timeoutMs: 250,
} as const;

/**
 * Sends a POST and reads the headers of the answer, and the beginning of its body if it acknowledges
 * nothing. Redirects are not followed. Rejects only when aborted, with the signal's reason.
 */
export async function post(
  client: Pick<HttpClient, 'request'>,
  request: PostRequest,
  connectTimeoutMs: number,
  signal: AbortSignal,
): Promise<PostAnswer> {
  try {
    const { status, answerMs, headers, body } = await client.request({
      ...request,
      method: 'POST',
      // Receivers tell a repetition by its `rid`.
      mayRepeat: true,
      headers: withoutCoding(request.headers),
      connectTimeoutMs: Math.min(connectTimeoutMs, request.timeoutMs),
      maxBodyBytes: 0,
      headersOnly: true,
      excerpt: EXCERPT,
      signal,
    });
    const retryAfter = headers.find(([name]) => name === 'retry-after')?.[1];
    const excerpt = EXCERPT.isWanted(status) ? toText(body) : undefined;
    return { kind: 'answered', status, answerMs, retryAfter, excerpt };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof HttpError)) throw error;
    return { kind: 'failed', error };
  }
}

/** Asks for an answer without compression, as an excerpt of it is to be read. */
function withoutCoding(
  headers: NonNullable<PostRequest['headers']> = [],
): NonNullable<HttpRequest['headers']> {
  const isGiven = headers.some(([name]) => name.toLowerCase() === 'accept-encoding');
  return isGiven ? headers : [...headers, ['accept-encoding', 'identity']];
}

/** A character that is cut at the end is left out. */
function toText(body: Uint8Array): string | undefined {
  if (body.byteLength === 0) return undefined;
  return new TextDecoder().decode(body, { stream: true });
}
