import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { listen } from './listen.ts';
import { TLS_FIXTURE } from './tls-fixture.ts';

/** A proxy on 127.0.0.1. */
export interface Proxy extends AsyncDisposable {
  /** `http://user:password@127.0.0.1:PORT` */
  readonly url: string;
  /** Authorities it was asked to connect to, oldest first. */
  readonly asked: readonly string[];
  /** Connections to it. */
  readonly connections: number;
  /** User names it was given over HTTP, oldest first. */
  readonly users: readonly string[];
}

/** What is wrong with a proxy. */
export type ProxyFault =
  | 'silent' // takes connections and never answers
  | 'login' // wants other credentials
  | 'refuses' // does not connect to the target
  | 'closes' // closes the connection
  | 'page' // says that it is connected, and answers itself
  | 'hangs up' // says that it is connected, and closes then
  | 'redirects' // answers with a redirect
  | 'floods' // answers with headers without an end
  | 'trickles'; // passes on a byte a second

/** Every fault. */
export const PROXY_FAULTS: readonly ProxyFault[] = [
  'silent',
  'login',
  'refuses',
  'closes',
  'page',
  'hangs up',
  'redirects',
  'floods',
  'trickles',
];

/** How a proxy behaves. */
export interface ProxyOptions {
  /** Where every connection leads (`host:port`), whatever was asked for; default: where it asks. */
  readonly target?: string;
  /** Answers every CONNECT with this status. */
  readonly refuseWith?: number;
  /** Default `http`. */
  readonly kind?: 'http' | 'https' | 'socks5';
  /** Whether every user may use it, with the password `password`. */
  readonly anyUser?: boolean;
  /** What is wrong at present; asked for each connection. */
  readonly fault?: () => ProxyFault | undefined;
  /** The address that targets see, such as 127.0.0.7; default 127.0.0.1. */
  readonly from?: string;
}

const PAGE = '<html><title>Sign in to the network</title><p>Please pay.</p></html>';
const EXPECTED = `Basic ${Buffer.from('user:password').toString('base64')}`;

/**
 * Starts a proxy that wants `user` and `password`. A `target` is where a proxy with a DNS of its own
 * might lead.
 */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const asked: string[] = [];
  const users: string[] = [];
  let connections = 0;
  const kind = options.kind ?? 'http';

  function join(client: Socket, authority: string, answer: () => void, head?: Buffer): void {
    asked.push(authority);
    const { hostname, port } = new URL(`http://${options.target ?? authority}`);
    const host = hostname.replace(/^\[(.*)\]$/, '$1');
    const upstream = connect({
      host,
      port: Number(port === '' ? 80 : port),
      ...(options.from === undefined ? {} : { localAddress: options.from }),
    });
    endOnError(upstream);
    upstream.once('connect', () => {
      answer();
      if (head !== undefined) upstream.write(head);
      client.pipe(upstream);
      if (options.fault?.() === 'trickles') trickle(upstream, client);
      else upstream.pipe(client);
    });
    upstream.once('close', () => client.destroy());
    client.once('close', () => upstream.destroy());
  }

  function onConnect(request: IncomingMessage, client: Socket, head: Buffer): void {
    endOnError(client);
    const fault = options.fault?.();
    if (misbehave(client, fault)) return;
    const given = request.headers['proxy-authorization'] ?? '';
    const [user = '', password] = Buffer.from(given.slice(6), 'base64').toString().split(':');
    users.push(user);
    const isUser = options.anyUser === true ? password === 'password' : given === EXPECTED;
    const isKnown = isUser && fault !== 'login';
    const status = isKnown ? (fault === 'refuses' ? 502 : options.refuseWith) : 407;
    if (status !== undefined) {
      client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const answer = (): void =>
      void client.write('HTTP/1.1 200 Connection established\r\nx-injected: yes\r\n\r\n');
    join(client, request.url ?? '', answer, head);
  }

  const onSocks = (client: Socket): void => {
    const fault = options.fault?.();
    if (fault !== 'silent' && fault !== undefined && misbehave(client, fault)) return;
    if (fault !== 'silent') serveSocks(client, fault, join);
  };

  const server = {
    http: () => createHttpServer((_request, response) => void response.writeHead(405).end()),
    https: () => createHttpsServer(TLS_FIXTURE),
    socks5: () => createServer(onSocks),
  }[kind]();
  server.on('connection', (socket: Socket) => {
    connections += 1;
    endOnError(socket);
  });
  if (kind !== 'socks5') server.on('connect', onConnect);
  const open = await listen(server);
  const host = kind === 'https' ? 'localhost' : '127.0.0.1';
  return {
    url: `${kind}://user:password@${host}:${open.port}`,
    asked,
    users,
    get connections() {
      return connections;
    },
    [Symbol.asyncDispose]: () => open[Symbol.asyncDispose](),
  };
}

function endOnError(socket: Socket): void {
  socket.on('error', () => socket.destroy());
}

/** Whether the fault has answered. */
function misbehave(client: Socket, fault: ProxyFault | undefined): boolean {
  if (fault === 'closes') client.destroy();
  else if (fault === 'page') {
    client.end(`HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n${PAGE}`);
  } else if (fault === 'hangs up') {
    client.write('HTTP/1.1 200 OK\r\n\r\n', () => setImmediate(() => client.destroy()));
  } else if (fault === 'redirects') {
    client.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/login\r\n\r\n');
  } else if (fault === 'floods') {
    client.write('HTTP/1.1 200 OK\r\n');
    const timer = setInterval(() => client.write(`x-more: ${'x'.repeat(8_000)}\r\n`), 1);
    client.once('close', () => clearInterval(timer));
  } else return fault === 'silent';
  return true;
}

function trickle(upstream: Socket, client: Socket): void {
  upstream.on('data', (chunk: Buffer) => {
    upstream.pause();
    let at = 0;
    const timer = setInterval(() => {
      client.write(chunk.subarray(at, at + 1));
      at += 1;
      if (at < chunk.length) return;
      clearInterval(timer);
      upstream.resume();
    }, 1_000);
    client.once('close', () => clearInterval(timer));
  });
}

/** RFC 1928 and 1929, as far as clients need them. */
function serveSocks(
  client: Socket,
  fault: ProxyFault | undefined,
  join: (client: Socket, authority: string, answer: () => void) => void,
): void {
  let step: 'methods' | 'login' | 'request' | 'joined' = 'methods';
  client.on('data', (data: Buffer) => {
    if (step === 'methods') {
      step = 'login';
      client.write(Buffer.from([5, data.includes(2, 2) ? 2 : 0xff]));
    } else if (step === 'login') {
      step = 'request';
      const length = data[1] ?? 0;
      const user = data.subarray(2, 2 + length).toString();
      const password = data.subarray(3 + length).toString();
      const isRight = user === 'user' && password === 'password' && fault !== 'login';
      client.write(Buffer.from([1, isRight ? 0 : 1]));
    } else if (step === 'request') {
      step = 'joined';
      const reply = (code: number): void =>
        void client.write(Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]));
      if (fault === 'refuses') reply(5);
      else join(client, socksAuthority(data), () => reply(0));
    }
  });
}

function socksAuthority(data: Buffer): string {
  const port = data.readUInt16BE(data.length - 2);
  const address = data.subarray(4, data.length - 2);
  if (data[3] === 1) return `${address.join('.')}:${port}`;
  if (data[3] === 3) return `${address.subarray(1).toString()}:${port}`;
  const groups = Array.from({ length: 8 }, (_, at) => address.readUInt16BE(at * 2).toString(16));
  return `[${groups.join(':')}]:${port}`;
}

/** Proxies of which each leads out by an address of its own, from 127.0.0.11 on. */
export async function startProxies(...options: readonly ProxyOptions[]) {
  const proxies = await Promise.all(
    options.map((each, index) => startProxy({ from: `127.0.0.${11 + index}`, ...each })),
  );
  return Object.assign(proxies, {
    async [Symbol.asyncDispose]() {
      await Promise.all(proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    },
  });
}

/** The URLs of proxies. */
export const urlsOf = (proxies: readonly Proxy[]): readonly string[] =>
  proxies.map(({ url }) => url);
