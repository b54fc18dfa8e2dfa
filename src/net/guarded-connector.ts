import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard, GatewayError } from './address-guard.ts';
import { HttpError } from './http-client.ts';
import { dispatchingFor, type Lookup, type LookupAnswer } from './lookup.ts';

/** What the connections to one origin are made with. */
export interface GuardedConnectorDeps {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** Host of the origin; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Certificate authorities, PEM; node's own when undefined. */
  readonly ca: string | undefined;
  readonly http2: boolean;
  /** After this an attempt that nobody waits for any more is given up. */
  readonly timeoutMs: number;
  /** Sees each socket as soon as it exists. */
  readonly onSocket: (socket: Socket) => void;
  readonly onConnected: (socket: Socket) => void;
}

/**
 * Makes a connector for undici that refuses addresses the guard does not permit
 * (`address_not_allowed`). The addresses judged are the very ones connected to: a name is looked up
 * once for each connection, the answers not permitted are dropped, and the socket gets the rest. So
 * an answer that changes between look-ups gains nothing. Connections kept alive were judged when
 * made.
 */
export function createGuardedConnector(deps: GuardedConnectorDeps): buildConnector.connector {
  const { guard, hostname, port } = deps;
  const refusalOf = (address: string): GatewayError | undefined =>
    guard.refusalOf({ hostname, address, port });

  const lookup: LookupFunction = (name, options, callback) => {
    permittedAnswers(deps, name, { claimant: dispatchingFor.getStore() }).then(
      (answers) => {
        if (options.all === true) callback(null, [...answers]);
        else callback(null, answers[0]?.address ?? '', answers[0]?.family);
      },
      (error: unknown) => callback(error as Error, []),
    );
  };

  const connect = buildConnector({
    timeout: deps.timeoutMs,
    allowH2: deps.http2,
    maxCachedSessions: 2,
    lookup,
    ...(deps.ca === undefined ? {} : { ca: deps.ca }),
  }) as (...args: Parameters<buildConnector.connector>) => Socket;

  return (options, callback) => {
    const refusal = isIP(hostname) === 0 ? undefined : refusalOf(hostname);
    if (refusal !== undefined) {
      callback(notAllowed(hostname, refusal), null);
      return;
    }
    const socket = connect(
      options,
      (...[error, connected]: Parameters<buildConnector.Callback>) => {
        if (error !== null) {
          callback(error, null);
          return;
        }
        const { remoteAddress } = connected;
        const reached = remoteAddress === undefined ? undefined : refusalOf(remoteAddress);
        if (reached !== undefined) {
          connected.destroy();
          callback(notAllowed(hostname, reached), null);
        } else {
          deps.onConnected(connected);
          callback(null, connected);
        }
      },
    );
    deps.onSocket(socket);
  };
}

/**
 * The addresses of `name` that may be connected to. Throws the first refusal when there are none,
 * and with `all` when one of them may not: for connections that somebody else makes by the name.
 */
export async function permittedAnswers(
  deps: Pick<GuardedConnectorDeps, 'guard' | 'lookup' | 'port'>,
  name: string,
  { all = false, claimant }: { readonly all?: boolean; readonly claimant?: Claimant | undefined },
): Promise<readonly LookupAnswer[]> {
  const { guard, port } = deps;
  const permitted: LookupAnswer[] = [];
  let refusal: GatewayError = 'address_not_allowed';
  const answers = await deps.lookup(name, claimant);
  for (const answer of answers.toReversed()) {
    const refused = guard.refusalOf({ hostname: name, address: answer.address, port });
    if (refused === undefined) permitted.unshift(answer);
    else refusal = refused;
  }
  if (permitted.length === 0 || (all && permitted.length < answers.length))
    throw notAllowed(name, refusal);
  return permitted;
}

/** The refusal of a host. */
export function notAllowed(hostname: string, refusal: GatewayError): HttpError {
  return new HttpError(
    refusal,
    refusal === 'address_not_allowed'
      ? `${hostname} is not a public address`
      : `the port is not one of HTTP, and NETWORK_ALLOW does not name ${hostname} with it`,
  );
}
