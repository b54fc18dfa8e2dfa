import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Dispatcher } from 'undici';
import errors from 'undici/lib/core/errors.js';
import Pool from 'undici/lib/dispatcher/pool.js';
import type { CrawlStep } from '../domain/job-try.ts';
import { createLruMap } from '../domain/lru-map.ts';
import type { AddressGuard } from './address-guard.ts';
import { createGuardedConnector } from './guarded-connector.ts';
import { httpError } from './http-failures.ts';
import { SILENT } from './http2-streams.ts';
import { limitAnswers, limitFrames } from './limit-answers.ts';
import type { Lookup } from './lookup.ts';
import { repairResponse } from './repair-response.ts';
import { skipContinue } from './skip-continue.ts';
import { createTunnelConnector } from './tunnel-connector.ts';
import { bareHostname, effectivePort } from './url-parts.ts';

/** How the pools connect. */
export interface OriginPoolsDeps {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  readonly ca: string | undefined;
  readonly http2: boolean;
  /**
   * Origins whose connections are kept. Beyond it, those of the least recently used idle origin are
   * closed.
   */
  readonly maxOrigins: number;
  /** How long an idle connection is kept whose server does not say it. */
  readonly idleMs: number;
  /** As in `NetworkSettings`. */
  readonly torProxy?: string | undefined;
  readonly proxyTarget?: 'address' | 'name' | undefined;
  /** Called with each connection to a proxy. */
  readonly onTunnel: (proxyUrl: string, socket: Socket) => void;
}

/** A pool that one request uses. */
export interface AcquiredPool {
  readonly dispatcher: Dispatcher;
  /**
   * Connections made so far. A request before and after which it is the same used an existing one.
   */
  connections(): number;
  /** What took how long of the latest connection; none of one through a proxy. */
  latest(): readonly CrawlStep[];
  /** A request is being written. */
  started(): void;
  /** Whether the origin has answered a request so far. */
  hadAnswers(): boolean;
  /** The origin has answered. */
  answered(): void;
  /** Gives the pool back; nobody gets it again when it is not `sound`. Further calls do nothing. */
  release(sound: boolean): void;
}

/**
 * Connections kept for each origin (scheme, host and port), separately for each account and proxy. A server that
 * miscounts the bytes of a request answers the next one on that connection with what the former one asked for.
 */
export interface OriginPools {
  /**
   * The pool of a URL's origin, reached through the proxy if one is given. With `repairs`, each
   * connection serves one request, by HTTP/1.1, whose response is repaired. With `fresh` the pool
   * is for one request, which has a connection of its own.
   */
  acquire(
    url: URL,
    options: {
      readonly accountId: string | undefined;
      readonly proxyUrl: string | undefined;
      readonly repairs: boolean;
      readonly fresh: boolean;
      /** Of the request. */
      readonly maxBodyBytes: number;
    },
  ): AcquiredPool;
  /** Ends all connections, including those in use and those being made. */
  destroy(): Promise<void>;
}

/** More than ordinary sites send, and far less than would fill memory. */
export const MAX_HEADER_BYTES = 65_536;
/** The longest that a server can have an idle connection kept. Each holds a file descriptor. */
const MAX_IDLE_MS = 30_000;
/** How long each connection serves one request after a response that nobody had asked for. */
const MISCOUNTED_MS = 10 * 60_000;
/** An attempt to connect that no request waits for any more ends after this. */
const ABANDONED_CONNECT_MS = 30_000;

interface Entry {
  readonly pool: Pool;
  inUse: number;
  connections: number;
  latest: readonly CrawlStep[];
  /** Connections since a request was last written. */
  unused: number;
  /** Requests so far. */
  begun: number;
  hadAnswers: boolean;
  /** Whether a response has arrived that no request had asked for. */
  isMiscounting: boolean;
  /** Whether a connection may have died. Requests in progress end on it, and further ones get a new pool. */
  isSilent: boolean;
  /** When the next request gets a new pool, on the scale of `performance.now()`. */
  readonly endsAt: number;
  /** The longest body that a request has asked for. */
  maxBodyBytes: number;
}

/**
 * undici connects again for as long as connections end before a request is written to them, which a
 * server or a proxy may do with each. After this many in a row the requests fail.
 */
const MAX_UNUSED = 20;

/**
 * Makes an empty set; connections are made on demand and end when they were idle for `idleMs`, or as
 * the server's `Keep-Alive` asks, at most after {@link MAX_IDLE_MS}.
 */
export function createOriginPools(deps: OriginPoolsDeps): OriginPools {
  const entries = createLruMap<string, Entry>({
    maxEntries: deps.maxOrigins,
    isPinned: ({ inUse }) => inUse > 0,
    onEvict: ({ pool }) => void pool.destroy(),
  });
  const connecting = new Set<Socket>();

  /** Opens a pool, whose connections serve one request each with `servesOne`. */
  function open(
    url: URL,
    proxyUrl: string | undefined,
    repairs: boolean,
    servesOne = false,
  ): Entry {
    const common = {
      ...deps,
      http2: deps.http2 && !repairs,
      hostname: bareHostname(url),
      port: effectivePort(url),
      timeoutMs: ABANDONED_CONNECT_MS,
      onSocket(socket: Socket) {
        connecting.add(socket);
        socket.once('close', () => connecting.delete(socket));
        if (proxyUrl !== undefined) deps.onTunnel(proxyUrl, socket);
      },
      onConnected(socket: Socket, steps: readonly CrawlStep[] = []) {
        connecting.delete(socket);
        entry.latest = steps;
        entry.connections += 1;
        entry.unused += 1;
        if (isHttp2(socket)) {
          limitFrames(socket, () => entry);
          socket.once(SILENT, () => {
            entry.isSilent = true;
          });
        } else {
          skipContinue(socket);
          limitAnswers(socket, () => entry.maxBodyBytes);
        }
        if (repairs) repairResponse(socket, MAX_HEADER_BYTES);
      },
    };
    const connector =
      proxyUrl === undefined
        ? createGuardedConnector(common)
        : createTunnelConnector({ ...common, proxyUrl });
    const entry: Entry = {
      inUse: 0,
      connections: 0,
      latest: [],
      unused: 0,
      begun: 0,
      hadAnswers: false,
      isMiscounting: false,
      isSilent: false,
      endsAt: servesOne ? performance.now() + MISCOUNTED_MS : Number.POSITIVE_INFINITY,
      maxBodyBytes: 0,
      pool: new Pool(url.origin, {
        maxHeaderSize: MAX_HEADER_BYTES,
        // Each request has timers of its own, which are exact.
        bodyTimeout: 0,
        keepAliveTimeout: deps.idleMs,
        keepAliveMaxTimeout: MAX_IDLE_MS,
        ...(repairs || servesOne ? { pipelining: 0 } : {}),
        connect(options, callback) {
          if (entry.unused < MAX_UNUSED) return connector(options, callback);
          entry.unused = 0;
          callback(httpError('connection_failed'), null);
        },
      }),
    };
    entry.pool.on('disconnect', (_origin, _targets, error) => {
      if (isUnasked(error)) entry.isMiscounting = true;
    });
    return entry;
  }

  return {
    acquire(url, { accountId = '', proxyUrl, repairs, fresh, maxBodyBytes }) {
      const key = `${accountId} ${url.origin} ${proxyUrl ?? ''}${repairs ? ' repairs' : ''}`;
      const kept = fresh ? undefined : entries.get(key);
      const entry =
        kept !== undefined && isUsable(kept)
          ? kept
          : open(url, proxyUrl, repairs, kept?.isMiscounting);
      if (kept !== undefined && kept !== entry) void kept.pool.close();
      entry.inUse += 1;
      entry.begun += 1;
      entry.maxBodyBytes = Math.max(entry.maxBodyBytes, maxBodyBytes);
      if (!fresh) entries.set(key, entry);
      let released = false;
      return {
        dispatcher: entry.pool,
        connections: () => entry.connections,
        latest: () => entry.latest,
        started() {
          entry.unused = 0;
        },
        hadAnswers: () => entry.hadAnswers,
        answered() {
          entry.hadAnswers = true;
        },
        release(sound) {
          if (released) return;
          released = true;
          entry.inUse -= 1;
          if (fresh) void entry.pool.close();
          if (sound || entries.get(key) !== entry) return;
          entries.delete(key);
          void entry.pool.close();
        },
      };
    },
    async destroy() {
      const pools = Array.from(entries.entries(), ([, { pool }]) => pool.destroy());
      entries.clear();
      for (const socket of connecting) socket.destroy();
      await Promise.all(pools);
    },
  };
}

function isUsable({ isMiscounting, isSilent, endsAt }: Entry): boolean {
  return !isMiscounting && !isSilent && performance.now() < endsAt;
}

/** Whether undici has closed a connection because a response began that it had not asked for. */
function isUnasked(error: Error): boolean {
  return error instanceof errors.SocketError && error.message === 'bad response';
}

function isHttp2(socket: Socket | TLSSocket): boolean {
  return 'alpnProtocol' in socket && socket.alpnProtocol === 'h2';
}
