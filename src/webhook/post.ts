import { type HttpClient, HttpError, type HttpRequest } from '../net/http-client.ts';

/** The endpoint's answer to a POST, or the reason why it is missing. */
export type PostAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** From the last byte of the body to the answer. */
      readonly answerMs: number;
      /** The header, as it was sent. */
      readonly retryAfter: string | undefined;
    }
  | { readonly kind: 'failed'; readonly error: HttpError };

/** What one POST is sent with. */
export type PostRequest = Pick<
  HttpRequest,
  'url' | 'headers' | 'body' | 'timeoutMs' | 'headersTimeoutMs' | 'claimant'
>;

/**
 * Sends a POST and reads the answer's headers alone. Redirects are not followed. Rejects only when
 * aborted, with the signal's reason.
 */
export async function post(
  client: Pick<HttpClient, 'request'>,
  request: PostRequest,
  connectTimeoutMs: number,
  signal: AbortSignal,
): Promise<PostAnswer> {
  try {
    const { status, answerMs, headers } = await client.request({
      ...request,
      method: 'POST',
      connectTimeoutMs: Math.min(connectTimeoutMs, request.timeoutMs),
      maxBodyBytes: 0,
      headersOnly: true,
      signal,
    });
    const retryAfter = headers.find(([name]) => name === 'retry-after')?.[1];
    return { kind: 'answered', status, answerMs, retryAfter };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof HttpError)) throw error;
    return { kind: 'failed', error };
  }
}
