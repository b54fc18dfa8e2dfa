import { constants } from 'node:http2';
import type { AnyResponse } from '../http/node-http.ts';

/** Tells the client that nothing was done, so that it may repeat the request. */
export function refuseCall(response: AnyResponse): void {
  if ('stream' in response) {
    response.stream?.close(constants.NGHTTP2_REFUSED_STREAM);
    return;
  }
  if (response.headersSent) return void response.destroy();
  response.writeHead(503, { 'retry-after': '1', connection: 'close' });
  response.end(() => response.destroy());
}
