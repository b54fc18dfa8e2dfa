import {
  type Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { KeptConnections } from './kept-connections.ts';
import type { ConnectTarget } from './target-connector.ts';

/** Where a request is forwarded to. */
export interface ForwardTarget extends ConnectTarget {
  readonly url: URL;
  readonly connections: Pick<KeptConnections, 'kept' | 'fresh'>;
}

/** What a forwarded request reports. */
export interface ForwardEvents {
  readonly onSent: (chunk: Buffer) => void;
  /** A piece of the response's body; the forwarding ends when this returns false. */
  readonly onReceived: (chunk: Buffer, bodyBytes: number) => boolean;
  /** There was no response; the promise rejects with the same error. */
  readonly onUnanswered: (error: Error) => void;
}

/**
 * Forwards a plain HTTP request to its target and streams the response back. Resolves when the
 * response was passed on; rejects when the exchange broke. What changes nothing at the target uses
 * a kept connection; when that had been closed meanwhile, it is sent again over another.
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

  function send(agent: Agent): ClientRequest {
    const onward = startRequest(request, target, agent);
    onward.on('error', (error) => {
      if (canRepeat && onward.reusedSocket && !response.destroyed && !response.headersSent) {
        send(target.connections.fresh).end();
        return;
      }
      events.onUnanswered(error);
      reject(error);
    });
    onward.once('response', (answer) => {
      let bodyBytes = 0;
      answer.on('data', (chunk: Buffer) => {
        bodyBytes += chunk.length;
        if (!events.onReceived(chunk, bodyBytes)) onward.destroy();
      });
      answer.once('error', reject);
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
    path: url.pathname + url.search,
    headers: withoutHopHeaders(request),
    setHost: false,
  });
}

/** Headers of one connection, which a proxy does not pass on (RFC 9110, 7.6.1). */
const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

/** Names and values in turn. */
function withoutHopHeaders({ rawHeaders }: IncomingMessage): string[] {
  return rawHeaders.filter((_, at) => !HOP_BY_HOP.test(rawHeaders[at - (at % 2)] ?? ''));
}
