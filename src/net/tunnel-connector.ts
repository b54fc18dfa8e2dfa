import type { Socket } from 'node:net';
import buildConnector from 'undici/lib/core/connect.js';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard } from './address-guard.ts';
import { permittedAddresses, withServerName } from './guarded-connector.ts';
import { toHttpError } from './http-failures.ts';
import { dispatchingFor, type Lookup } from './lookup.ts';
import { openTunnel } from './proxy-tunnel.ts';
import { createSessionKeeper, MAX_CACHED_SESSIONS, sharedSecureContext } from './tls-sessions.ts';

/** How hosts are reached through a proxy, and how their addresses are judged. */
export interface ProxyRoute {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  readonly proxyUrl: string;
  /** URL of the proxy that leads to Tor. */
  readonly torProxy?: string | undefined;
  /** What the proxy is asked to connect to. */
  readonly proxyTarget?: 'address' | 'name' | undefined;
  readonly ca?: string | undefined;
}

/** How many addresses of a name are tried. */
const MAX_ADDRESSES = 3;

/**
 * Connects to a host through a proxy. The name is looked up here, and the proxy is given an address
 * that was judged. If it were given the name, it would look it up again. A name server that answers
 * differently then could lead the proxy into its own network. For a proxy that accepts only names
 * (`proxyTarget` is `name`), all addresses that the name has here must be permitted. Names under
 * `.onion`, which no name server knows, are passed to the proxy of Tor as they are.
 */
export async function connectThroughProxy(
  route: ProxyRoute,
  target: { readonly hostname: string; readonly port: number },
  options: { readonly claimant?: Claimant; readonly onSocket?: (socket: Socket) => void } = {},
): Promise<Socket> {
  const { hostname, port } = target;
  const open = (host: string): Promise<Socket> => openTunnel({ ...route, ...options, host, port });
  if (hostname.endsWith('.onion') && route.proxyUrl === route.torProxy) return open(hostname);
  const all = route.proxyTarget === 'name';
  const { claimant } = options;
  const addresses = await permittedAddresses({ ...route, port }, hostname, { all, claimant });
  if (all) return open(hostname);
  let failure: unknown;
  for (const address of addresses.slice(0, MAX_ADDRESSES)) {
    try {
      return await open(address);
    } catch (error) {
      // The next address may answer.
      failure = error;
    }
  }
  throw failure;
}

/**
 * Makes a connector for undici that goes through a proxy. TLS, HTTP/2 and certificates are
 * negotiated with the target itself, by its name.
 */
export function createTunnelConnector(
  deps: ProxyRoute & {
    /** Host of the origin; an IPv6 address without brackets. */
    readonly hostname: string;
    readonly port: number;
    readonly http2: boolean;
    readonly timeoutMs: number;
    readonly onSocket: (socket: Socket) => void;
    readonly onConnected: (socket: Socket) => void;
  },
): buildConnector.connector {
  const secure = buildConnector({
    timeout: deps.timeoutMs,
    allowH2: deps.http2,
    maxCachedSessions: MAX_CACHED_SESSIONS,
    secureContext: sharedSecureContext(deps.ca),
  }) as (...args: Parameters<buildConnector.connector>) => Socket;
  const keepSession = createSessionKeeper();

  return (options, callback) => {
    const done = (...[error, socket]: Parameters<buildConnector.Callback>): void => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      deps.onConnected(socket);
      callback(null, socket);
    };
    const claimant = dispatchingFor.getStore();
    connectThroughProxy(deps, deps, {
      onSocket: deps.onSocket,
      ...(claimant === undefined ? {} : { claimant }),
    }).then(
      (socket) => {
        if (options.protocol !== 'https:') done(null, socket);
        else keepSession(secure({ ...withServerName(options), httpSocket: socket }, done));
      },
      (error: unknown): void => done(toHttpError(error), null),
    );
  };
}
