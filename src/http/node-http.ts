import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';

/** A request of either HTTP version, as node hands it over. */
export type AnyRequest = IncomingMessage | Http2ServerRequest;

/** Its response. */
export type AnyResponse = ServerResponse | Http2ServerResponse;

/** Whether the client has gone, so that nothing can be sent any more. */
export function isGone(response: AnyResponse): boolean {
  // Over HTTP/2 the response outlives its stream, and writing to it would throw.
  return 'stream' in response ? (response.stream?.destroyed ?? true) : response.destroyed;
}

/** Breaks a reply off, so that the client sees that it is not whole. */
export function breakOff(response: AnyResponse): void {
  // Destroyed without a code, a stream would look as if it had ended well.
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}
