import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';

/** A request of either HTTP version, as Node provides it. */
export type AnyRequest = IncomingMessage | Http2ServerRequest;

/** Its response. */
export type AnyResponse = ServerResponse | Http2ServerResponse;

/** Whether the client has disconnected, so that nothing more can be sent. */
export function isGone(response: AnyResponse): boolean {
  // Over HTTP/2 the response outlives its stream, and writing to it would throw.
  return 'stream' in response ? (response.stream?.destroyed ?? true) : response.destroyed;
}

/** Aborts a reply, so that the client notices that it is incomplete. */
export function breakOff(response: AnyResponse): void {
  // A stream that is destroyed without a code looks as if it had ended normally.
  if ('stream' in response) response.stream?.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}
