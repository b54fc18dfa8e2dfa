import { randomBytes, timingSafeEqual } from 'node:crypto';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect as connectTcp, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard } from './address-guard.ts';
import type { RefusedConnection } from './create-http-client.ts';
import { notAllowed, permittedAnswers } from './guarded-connector.ts';
import type { HttpFailure } from './http-client.ts';
import { httpError, toHttpError } from './http-failures.ts';
import type { Lookup } from './lookup.ts';
import { connected } from './proxy-tunnel.ts';
import { connectThroughProxy } from './tunnel-connector.ts';
import { bareHostname, effectivePort } from './url-parts.ts';

/** What a proxy judges and reaches targets with. */
export interface FilteringProxyDeps {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** URL of the operator's proxy that everything goes on through. */
  readonly upstream?: string;
  /** As of {@link ProxyRoute}. */
  readonly torProxy?: string | undefined;
  readonly proxyTarget?: 'address' | 'name' | undefined;
  /** On whose behalf the page is shown. */
  readonly claimant?: Claimant;
  /** Told of every connection that was refused for where it led. */
  readonly onRefused?: ((refused: RefusedConnection) => void) | undefined;
  /** Bytes that may come back in all; more ends every connection. */
  readonly maxBytes: number;
  /**
   * Bytes that may be sent in all, beside what belongs to every request; more ends every
   * connection.
   */
  readonly maxSentBytes: number;
  /** Told when an answer was cut off, or all are. */
  readonly onCut?: () => void;
  /** Bytes of one answer, where answers can be told apart (plain HTTP); more ends it. */
  readonly maxAnswerBytes: number;
}

/** A proxy on a port of its own, for one page of a browser. */
export interface FilteringProxy extends AsyncDisposable {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** What the proxy asks of whoever uses it: otherwise every user of this machine could. */
  readonly credentials: { readonly username: string; readonly password: string };
  /** Why the last connection to `host:port` could not be made. */
  failureOf(authority: string): HttpFailure | undefined;
  /** Whether more than `maxBytes` came back, or more than `maxSentBytes` was sent. */
  readonly exhausted: boolean;
  /** Whether the answer of an address was cut off for its length. */
  hasCut(url: string): boolean;
}

const REALM = 'Basic realm="page"';
const CHALLENGE = `proxy-authenticate: ${REALM}\r\ncontent-length: 0\r\nconnection: close\r\n`;

interface Target {
  readonly hostname: string;
  readonly port: number;
}

/**
 * Starts a proxy that a browser sends all its traffic through: plain HTTP as such, everything else
 * (TLS, WebSocket) by CONNECT. Names are looked up here, once for each connection, and the
 * addresses connected to are the ones the guard has judged. Whatever a page does, it reaches what
 * it may or nothing.
 */
export async function startFilteringProxy(deps: FilteringProxyDeps): Promise<FilteringProxy> {
  const failures = new Map<string, HttpFailure>();
  const sockets = new Set<Duplex>();
  const cut = new Set<string>();
  const credentials = { username: 'page', password: randomBytes(24).toString('base64url') };
  const authorization = Buffer.from(
    `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`,
  );
  let bytes = 0;
  let sent = 0;
  let exhausted = false;

  function isOwn(request: IncomingMessage): boolean {
    const given = Buffer.from(request.headers['proxy-authorization'] ?? '');
    return given.length === authorization.length && timingSafeEqual(given, authorization);
  }

  function keep<T extends Duplex>(socket: T): T {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A broken connection is the browser's to notice: it is closed on both sides.
    socket.on('error', () => socket.destroy());
    return socket;
  }

  function count(chunk: Buffer): void {
    bytes += chunk.length;
    if (bytes > deps.maxBytes) exhaust();
  }

  function countSent(chunk: Buffer): void {
    sent += chunk.length;
    if (sent > deps.maxSentBytes) exhaust();
  }

  function exhaust(): void {
    if (exhausted) return;
    exhausted = true;
    for (const socket of sockets) socket.destroy();
    deps.onCut?.();
  }

  async function reach(target: Target): Promise<Socket> {
    const authority = `${target.hostname}:${target.port}`;
    try {
      if (exhausted) throw httpError('body_too_large');
      const socket =
        deps.upstream === undefined
          ? await connectGuarded(deps, target)
          : await connectThroughProxy({ ...deps, proxyUrl: deps.upstream }, target, deps);
      failures.delete(authority);
      return keep(socket);
    } catch (error) {
      const { code } = toHttpError(error, deps.upstream !== undefined);
      failures.set(authority, code);
      if (code === 'address_not_allowed' || code === 'port_not_allowed') {
        deps.onRefused?.({ ...target, refusal: code, claimant: deps.claimant });
      }
      throw error;
    }
  }

  const server = createServer();
  server.on('connection', keep);
  server.on('connect', (request: IncomingMessage, client: Socket, head: Buffer) => {
    if (!isOwn(request)) return void client.end(`HTTP/1.1 407 No\r\n${CHALLENGE}\r\n`);
    const target = targetOf(`http://${request.url ?? ''}`);
    if (target === undefined) return void client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    reach(target).then(
      (socket) => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        if (head.length > 0) socket.write(head);
        socket.on('data', count);
        client.on('data', countSent);
        socket.pipe(client);
        client.pipe(socket);
        socket.once('close', () => client.destroy());
        client.once('close', () => socket.destroy());
      },
      () => client.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n'),
    );
  });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isOwn(request)) {
      response.writeHead(407, { 'proxy-authenticate': REALM, connection: 'close' }).end();
      return;
    }
    forward(request, response).catch(() => {
      // Closed without an answer: an error page of the proxy's own would look like the site's.
      response.destroy();
    });
  });

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '');
    const target = url?.protocol === 'http:' ? targetOf(url.href) : undefined;
    if (url === null || target === undefined) throw httpError('invalid_url');
    const socket = await reach(target);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onward = httpRequest({
      createConnection: () => socket,
      method: request.method,
      path: url.pathname + url.search,
      headers: onwardHeaders(request),
      setHost: false,
    });
    // One that came through another proxy was paused when that had answered.
    socket.resume();
    onward.once('error', (error) => {
      failures.set(`${target.hostname}:${target.port}`, toHttpError(error, false).code);
      reject(error);
    });
    onward.once('response', (answer) => {
      let answered = 0;
      answer.on('data', (chunk: Buffer) => {
        count(chunk);
        answered += chunk.length;
        if (answered <= deps.maxAnswerBytes) return;
        cut.add(url.href);
        socket.destroy();
        deps.onCut?.();
      });
      answer.once('error', reject);
      const headers = answer.rawHeaders.filter((_, index, all) => !isHop(all[index - (index % 2)]));
      response.writeHead(answer.statusCode ?? 502, headers);
      answer.pipe(response).once('finish', resolve);
    });
    response.once('close', () => socket.destroy());
    request.on('data', countSent);
    request.pipe(onward);
    await promise;
    socket.destroy();
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    credentials,
    failureOf: (authority) => failures.get(authority),
    hasCut: (address) => cut.has(address),
    get exhausted() {
      return exhausted;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function targetOf(text: string): Target | undefined {
  const url = URL.parse(text);
  if (url === null || url.hostname === '') return undefined;
  return { hostname: bareHostname(url), port: effectivePort(url) };
}

const HOP_BY_HOP = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

function isHop(name: string | undefined): boolean {
  return HOP_BY_HOP.test(name ?? '');
}

function onwardHeaders(request: IncomingMessage): string[] {
  const kept = request.rawHeaders.filter((_, index, all) => !isHop(all[index - (index % 2)]));
  return [...kept, 'connection', 'close'];
}

async function connectGuarded(deps: FilteringProxyDeps, target: Target): Promise<Socket> {
  const { hostname, port } = target;
  if (isIP(hostname) !== 0) {
    const refusal = deps.guard.refusalOf({ hostname, address: hostname, port });
    if (refusal !== undefined) throw notAllowed(hostname, refusal);
    return connected(connectTcp({ host: hostname, port }), 'connect');
  }
  const { claimant } = deps;
  let failure: unknown = httpError('connection_failed');
  for (const { address } of await permittedAnswers({ ...deps, port }, hostname, { claimant })) {
    try {
      return await connected(connectTcp({ host: address, port }), 'connect');
    } catch (error) {
      // The next address may answer.
      failure = error;
    }
  }
  throw failure;
}
