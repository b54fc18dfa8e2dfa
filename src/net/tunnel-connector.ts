import { isIP, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard } from './address-guard.ts';
import { notAllowed, permittedAnswers } from './guarded-connector.ts';
import type { HttpError } from './http-client.ts';
import { toHttpError } from './http-failures.ts';
import { dispatchingFor, type Lookup } from './lookup.ts';
import { openTunnel } from './proxy-tunnel.ts';

/** What a proxy is asked for, and how that is judged. */
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

/** So many of a name's addresses are tried. */
const MAX_ADDRESSES = 3;

/**
 * Connects to a host through a proxy. Its name is looked up here and the proxy is given an address
 * that was judged: given the name, it would look it up again, and a name server that answers
 * otherwise then would lead it into its own network. Where a proxy takes names only (`proxyTarget`
 * is `name`), all addresses the name has here must be permitted. Names under `.onion`, which no
 * name server knows, are left to the proxy of Tor.
 */
export async function connectThroughProxy(
  route: ProxyRoute,
  target: { readonly hostname: string; readonly port: number },
  options: { readonly claimant?: Claimant; readonly onSocket?: (socket: Socket) => void } = {},
): Promise<Socket> {
  const { hostname, port } = target;
  const open = (host: string): Promise<Socket> =>
    openTunnel({ proxyUrl: route.proxyUrl, host, port, ca: route.ca, onSocket: options.onSocket });
  if (hostname.endsWith('.onion') && route.proxyUrl === route.torProxy) return open(hostname);
  const addresses = await judgedAddresses(route, target, options.claimant);
  if (route.proxyTarget === 'name') return open(hostname);
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

async function judgedAddresses(
  route: ProxyRoute,
  { hostname, port }: { readonly hostname: string; readonly port: number },
  claimant: Claimant | undefined,
): Promise<readonly string[]> {
  if (isIP(hostname) === 0) {
    const all = route.proxyTarget === 'name';
    const answers = await permittedAnswers({ ...route, port }, hostname, { all, claimant });
    return answers.map(({ address }) => address);
  }
  const refusal = route.guard.refusalOf({ hostname, address: hostname, port });
  if (refusal !== undefined) throw notAllowed(hostname, refusal);
  return [hostname];
}

/**
 * Makes a connector for undici that goes through a proxy; TLS, HTTP/2 and certificates are the
 * target's own, by its name.
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
    maxCachedSessions: 2,
    ...(deps.ca === undefined ? {} : { ca: deps.ca }),
  });

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
        if (options.protocol === 'https:') secure({ ...options, httpSocket: socket }, done);
        else done(null, socket);
      },
      (error: unknown): void => done(viaProxy(error), null),
    );
  };
}

function viaProxy(error: unknown): HttpError {
  const failure = toHttpError(error, false);
  return failure.code === 'connection_failed' ? toHttpError(error, true) : failure;
}
