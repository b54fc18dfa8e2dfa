import { randomBytes, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type FailureReports, reportFailure } from './failure-reports.ts';
import { forwardRequest } from './forward-request.ts';
import type { HttpFailure } from './http-client.ts';
import { httpError, proxyDetail, toHttpError } from './http-failures.ts';
import { createKeptConnections } from './kept-connections.ts';
import { limitAnswers } from './limit-answers.ts';
import { MAX_HEADER_BYTES } from './origin-pools.ts';
import type { Traffic } from './proxy-traffic.ts';
import {
  type ConnectTarget,
  connectToTarget,
  type TargetConnectorDeps,
} from './target-connector.ts';
import { createTrafficMeter, type TrafficMeter } from './traffic-meter.ts';
import { bareHostname, effectivePort } from './url-parts.ts';

/** How a proxy connects to targets, and its limits. */
export interface FilteringProxyDeps extends TargetConnectorDeps, FailureReports {
  /** Bytes that may be received in all; more ends every connection. */
  readonly maxBytes: number;
  /** Bytes that may be sent in all, request headers of plain HTTP excepted; more ends every connection. */
  readonly maxSentBytes: number;
  /** Bytes of one response, where responses can be told apart (plain HTTP); more ends it. */
  readonly maxAnswerBytes: number;
}

/** A proxy on a port of its own, for one page of a browser and one crawl after the other. */
export interface FilteringProxy extends AsyncDisposable {
  /**
   * Connects for a crawl, with nothing counted and no failures known. `onCutOff` is called when a
   * response, or all traffic, is cut off because of the limits.
   */
  begin(onCutOff?: () => void): void;
  /**
   * Ends the connections of the crawl, and refuses new ones until the next begins. Those of plain
   * HTTP to the site of its first request stay when they serve no request.
   */
  end(): void;
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Required of every client, because other users of this machine can connect to the port. */
  readonly credentials: { readonly username: string; readonly password: string };
  /** Why the last connection to `host:port` failed; undefined when it did not. */
  failureAt(authority: string): HttpFailure | undefined;
  /** Why the upstream proxy last failed or refused, as {@link proxyDetail} says. */
  readonly upstreamDetail: string | undefined;
  /** Whether `maxBytes` or `maxSentBytes` was passed. */
  readonly isExhausted: boolean;
  /** What the crawl has received and sent, request headers of plain HTTP excepted. */
  readonly traffic: Traffic;
  /** Whether the response of an address was cut off because it was too long. */
  wasCutOff(url: string): boolean;
}

const REALM = 'Basic realm="page"';
const PROXY_AUTH_REQUIRED = `HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: ${REALM}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`;

/**
 * Starts a proxy, which connects to nothing until a crawl begins, that a browser sends all its traffic through: plain HTTP as such, everything else
 * (TLS, WebSocket) by CONNECT. Names are looked up here, once for each connection, and the
 * addresses connected to are the ones that the guard has judged, so a page reaches nothing else.
 */
export async function startFilteringProxy(deps: FilteringProxyDeps): Promise<FilteringProxy> {
  const failures = new Map<string, HttpFailure>();
  const sockets = new Set<Duplex>();
  const cutOff = new Set<string>();
  let upstreamDetail: string | undefined;
  let isOpen = false;
  let onCutOff: (() => void) | undefined;
  const credentials = { username: 'page', password: randomBytes(24).toString('base64url') };
  const isAuthorized = createProxyAuthorization(credentials);
  let meter = newMeter();
  /** The target of the crawl's first request. */
  let home: ConnectTarget | undefined;
  const connections = createKeptConnections(async (target) => {
    try {
      const socket = await connectTo(target);
      limitAnswers(socket, () => deps.maxAnswerBytes);
      return socket;
    } catch (error) {
      throw toHttpError(error);
    }
  });

  function newMeter(): TrafficMeter {
    return createTrafficMeter({
      maxReceivedBytes: deps.maxBytes,
      maxSentBytes: deps.maxSentBytes,
      onExhausted() {
        disconnect();
        onCutOff?.();
      },
    });
  }

  function disconnect(except: readonly Duplex[] = []): void {
    for (const socket of sockets) if (!except.includes(socket)) socket.destroy();
  }

  function track<T extends Duplex>(socket: T): T {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // The browser notices a broken connection by itself, because both sides are closed.
    socket.on('error', () => socket.destroy());
    return socket;
  }

  async function connectTo(target: ConnectTarget): Promise<Socket> {
    const crawl = meter;
    try {
      if (crawl.isExhausted) throw httpError('body_too_large');
      const socket = track(await connectToTarget(deps, target));
      // The crawl has ended while it was connected.
      if (!isOpen || meter !== crawl) {
        socket.destroy();
        throw httpError('aborted');
      }
      failures.delete(authority(target));
      return socket;
    } catch (error) {
      const failure = toHttpError(error);
      if (meter !== crawl) throw error;
      failures.set(authority(target), failure.code);
      upstreamDetail = proxyDetail(failure) ?? upstreamDetail;
      reportFailure(deps, failure, { ...target, claimant: deps.claimant });
      throw error;
    }
  }

  function tunnel(request: IncomingMessage, client: Socket, head: Buffer): void {
    if (!isAuthorized(request)) return void client.end(PROXY_AUTH_REQUIRED);
    const target = parseTarget(`http://${request.url ?? ''}`);
    if (target === undefined) return void client.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    connectTo(target).then(
      (socket) => {
        const crawl = meter;
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        if (head.length > 0) socket.write(head);
        socket.on('data', crawl.received);
        client.on('data', crawl.sent);
        socket.pipe(client);
        client.pipe(socket);
        socket.once('close', () => client.destroy());
        client.once('close', () => socket.destroy());
      },
      () => client.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n'),
    );
  }

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = URL.parse(request.url ?? '');
    const target = url?.protocol === 'http:' ? parseTarget(url.href) : undefined;
    if (url === null || target === undefined) throw httpError('invalid_url');
    const crawl = meter;
    home ??= target;
    await forwardRequest(
      request,
      response,
      { ...target, url, connections },
      {
        onSent: crawl.sent,
        onReceived(chunk, bodyBytes) {
          crawl.received(chunk);
          if (bodyBytes <= deps.maxAnswerBytes) return true;
          cutOff.add(url.href);
          onCutOff?.();
          return false;
        },
        onUnanswered(error) {
          if (meter === crawl) failures.set(authority(target), toHttpError(error).code);
        },
      },
    );
  }

  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES });
  server.on('connection', (socket) => {
    if (isOpen) track(socket);
    else socket.destroy();
  });
  server.on('connect', tunnel);
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!isAuthorized(request)) {
      response.writeHead(407, { 'proxy-authenticate': REALM, connection: 'close' }).end();
      return;
    }
    forward(request, response).catch(() => {
      // Closed without a response: an error page of the proxy would look like one of the site.
      response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    credentials,
    begin(whenCutOff) {
      meter = newMeter();
      failures.clear();
      upstreamDetail = undefined;
      cutOff.clear();
      onCutOff = whenCutOff;
      isOpen = true;
    },
    end() {
      isOpen = false;
      onCutOff = undefined;
      // The next crawl is one of the same site.
      disconnect(home && connections.idleAt(home));
      home = undefined;
    },
    failureAt: (hostAndPort) => failures.get(hostAndPort),
    wasCutOff: (address) => cutOff.has(address),
    get upstreamDetail() {
      return upstreamDetail;
    },
    get isExhausted() {
      return meter.isExhausted;
    },
    get traffic() {
      return meter.traffic;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      isOpen = false;
      disconnect();
      await closed;
    },
  };
}

/** Makes the check for `Proxy-Authorization`, in constant time. */
function createProxyAuthorization({
  username,
  password,
}: FilteringProxy['credentials']): (request: IncomingMessage) => boolean {
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  const expected = Buffer.from(`Basic ${basic}`);
  return ({ headers }) => {
    const given = Buffer.from(headers['proxy-authorization'] ?? '');
    return given.length === expected.length && timingSafeEqual(given, expected);
  };
}

function authority({ hostname, port }: ConnectTarget): string {
  return `${hostname}:${port}`;
}

function parseTarget(text: string): ConnectTarget | undefined {
  const url = URL.parse(text);
  if (url === null || url.hostname === '') return undefined;
  return { hostname: bareHostname(url), port: effectivePort(url) };
}
