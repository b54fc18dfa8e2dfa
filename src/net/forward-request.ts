import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What a forwarded request reports. */
export interface ForwardEvents {
  readonly onSent: (chunk: Buffer) => void;
  /** A piece of the response's body; the forwarding ends when this returns false. */
  readonly onReceived: (chunk: Buffer, bodyBytes: number) => boolean;
  /** There was no response; the promise rejects with the same error. */
  readonly onUnanswered: (error: Error) => void;
}

/**
 * Forwards a plain HTTP request over a connection to its target and streams the response back.
 * Resolves when the response was passed on; rejects when the exchange broke. The connection serves
 * this one request and is closed afterwards.
 */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  target: { readonly url: URL; readonly socket: Socket },
  events: ForwardEvents,
): Promise<void> {
  const { url, socket } = target;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onward = httpRequest({
    createConnection: () => socket,
    method: request.method,
    path: url.pathname + url.search,
    headers: [...withoutHopHeaders(request), 'connection', 'close'],
    setHost: false,
  });
  // A connection through another proxy was paused once that proxy had answered.
  socket.resume();
  onward.once('error', (error) => {
    events.onUnanswered(error);
    reject(error);
  });
  onward.once('response', (answer) => {
    let bodyBytes = 0;
    answer.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
      if (!events.onReceived(chunk, bodyBytes)) socket.destroy();
    });
    answer.once('error', reject);
    response.writeHead(answer.statusCode ?? 502, withoutHopHeaders(answer));
    answer.pipe(response).once('finish', resolve);
  });
  response.once('close', () => socket.destroy());
  request.on('data', events.onSent);
  request.pipe(onward);
  await promise;
  socket.destroy();
}

/** Headers of one connection, which a proxy does not pass on (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** Names and values in turn. */
function withoutHopHeaders({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_, at) => !HOP_BY_HOP.test(rawHeaders[at - (at % 2)] ?? ''));
}
