import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { createServer } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { listen } from './listen.ts';
import { TLS_FIXTURE } from './tls-fixture.ts';

/** An https site on 127.0.0.1 with the certificate of `TLS_FIXTURE`. */
export interface TlsSite extends AsyncDisposable {
  /** `https://127.0.0.1:PORT` */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Connections that resumed a session of an earlier one. */
  readonly resumed: number;
}

/** Starts one that answers each request with its HTTP version, method, path and body as JSON; without `http2` it speaks HTTP/1.1 only, and with `closes` each connection serves one request. */
export async function startTlsSite(
  options: { readonly http2?: boolean; readonly closes?: boolean } = {},
): Promise<TlsSite> {
  let connections = 0;
  let resumed = 0;
  const answer = (
    request: IncomingMessage | Http2ServerRequest,
    response: ServerResponse | Http2ServerResponse,
  ): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { httpVersion, method, url, headers } = request;
      const body = Buffer.concat(chunks).toString();
      if (options.closes === true) response.setHeader('connection', 'close');
      response.setHeader('content-type', 'application/json');
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.end(JSON.stringify({ httpVersion, method, url, headers, body }));
    });
  };
  const server =
    options.http2 === false
      ? createServer(TLS_FIXTURE, answer)
      : createSecureServer({ ...TLS_FIXTURE, allowHTTP1: true }, answer);
  server.on('sessionError', () => undefined);
  server.on('tlsClientError', () => undefined);
  server.on('connection', () => {
    connections += 1;
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.isSessionReused()) resumed += 1;
  });
  const open = await listen(server);
  const { port } = open;
  return {
    url: `https://127.0.0.1:${port}`,
    host: `127.0.0.1:${port}`,
    port,
    get connections() {
      return connections;
    },
    get resumed() {
      return resumed;
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}
