import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { httpError } from './http-failures.ts';
import type { KeptConnections } from './kept-connections.ts';
import { MAX_HEADER_BYTES } from './origin-pools.ts';
import type { ConnectTarget } from './target-connector.ts';
import { pathAndQuery } from './url-parts.ts';

/** Where a request is forwarded to. */
export interface ForwardTarget extends ConnectTarget {
  readonly url: URL;
  readonly connections: Pick<KeptConnections, 'kept' | 'fresh' | 'connect'>;
}

/** What a forwarded request reports. */
export interface ForwardEvents {
  readonly onSent: (chunk: Buffer) => void;
  /** A piece of the response's body; the forwarding ends when this returns false. */
  readonly onReceived: (chunk: Buffer, bodyBytes: number) => boolean;
  /** There was no response; the promise rejects with the same error. */
  readonly onUnanswered: (error: Error) => void;
}

/** Delay of the end of a body that is cut short; the browser handles its beginning in that time. */
const CUT_SHORT_MS = 1_000;

/**
 * Forwards a plain HTTP request to its target and streams the response back. Resolves when the
 * response was passed on; rejects without a response, or with too much of it. What changes nothing
 * at the target uses a kept connection. It is sent again over another when that one was closed, or
 * when the response breaks rules of HTTP, which a browser may still understand.
 */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  target: ForwardTarget,
  events: ForwardEvents,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const canRepeat = request.method === 'GET' || request.method === 'HEAD';
  request.on('data', events.onSent);

  function fail(error: Error): void {
    events.onUnanswered(error);
    reject(error);
  }

  function send(agent: Agent): ClientRequest {
    const onward = startRequest(request, target, agent);
    onward.on('error', (error) => {
      if (canRepeat && onward.reusedSocket && !response.destroyed && !response.headersSent) {
        send(target.connections.fresh).end();
        return;
      }
      if (canRepeat && isMalformed(error) && !response.headersSent) {
        relayResponse(request, response, target, events).then(resolve, fail);
        return;
      }
      fail(error);
    });
    onward.once('response', (answer) => {
      let bodyBytes = 0;
      answer.on('data', (chunk: Buffer) => {
        bodyBytes += chunk.length;
        if (events.onReceived(chunk, bodyBytes)) return;
        onward.destroy();
        reject(httpError('body_too_large'));
      });
      // A browser shows what it has of a body that is cut short, unless it learns of that at once.
      answer.once('error', () => {
        setTimeout(() => response.socket?.end(), CUT_SHORT_MS).unref();
        resolve();
      });
      response.writeHead(answer.statusCode ?? 502, withoutHopHeaders(answer));
      answer.pipe(response).once('finish', resolve);
    });
    response.once('close', () => {
      if (!response.writableFinished) onward.destroy();
    });
    return onward;
  }

  request.pipe(send(canRepeat ? target.connections.kept : target.connections.fresh));
  await promise;
}

function startRequest(
  request: IncomingMessage,
  { url, hostname, port }: ForwardTarget,
  agent: Agent,
): ClientRequest {
  return httpRequest({
    agent,
    host: hostname,
    port,
    method: request.method,
    path: pathAndQuery(url),
    headers: withoutHopHeaders(request),
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
}

/** Whether the parser has refused the response. */
function isMalformed(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('HPE_');
}

/** Requests over a connection of its own, and passes on the bytes of the response as they are. */
async function relayResponse(
  request: IncomingMessage,
  response: ServerResponse,
  { url, connections, ...target }: ForwardTarget,
  { onReceived }: ForwardEvents,
): Promise<void> {
  const socket = await connections.connect(target);
  const client = response.socket;
  if (client === null) return void socket.destroy();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (!onReceived(chunk, bytes)) socket.destroy();
  });
  socket.once('close', resolve);
  client.once('close', () => socket.destroy());
  const lines = [`${request.method} ${pathAndQuery(url)} HTTP/1.1`, 'connection: close'];
  const headers = withoutHopHeaders(request);
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.pipe(client);
  await closed;
}

/** Headers of one connection, which a proxy does not pass on (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** Names and values in turn. */
function withoutHopHeaders({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_, at) => !HOP_BY_HOP.test(rawHeaders[at - (at % 2)] ?? ''));
}
