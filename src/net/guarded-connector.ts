import { isIP, type LookupFunction, type Socket } from 'node:net';
import { buildConnector } from 'undici';
import type { AddressGuard } from './address-guard.ts';
import { HttpError } from './http-client.ts';
import type { Lookup, LookupAnswer } from './lookup.ts';

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
 * Makes a connector for undici that refuses addresses the guard does not permit (`address_not_allowed`). The addresses judged are
 * the very ones connected to: a name is looked up once for each connection, the answers not permitted are dropped, and the
 * socket gets the rest. So an answer that changes between look-ups gains nothing. Connections kept alive were judged when made.
 */
export function createGuardedConnector(deps: GuardedConnectorDeps): buildConnector.connector {
  const { guard, hostname, port } = deps;
  const permits = (address: string): boolean => guard.permits({ hostname, address, port });

  const lookup: LookupFunction = (name, options, callback) => {
    permittedAnswers(deps, name).then(
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
    if (isIP(hostname) !== 0 && !permits(hostname)) {
      callback(notAllowed(hostname), null);
      return;
    }
    const socket = connect(
      options,
      (...[error, connected]: Parameters<buildConnector.Callback>) => {
        if (error !== null) {
          callback(error, null);
        } else if (connected.remoteAddress !== undefined && !permits(connected.remoteAddress)) {
          connected.destroy();
          callback(notAllowed(hostname), null);
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
 * The addresses of `name` that may be connected to; all of them must be when `all` is set, for connections somebody else will
 * make. Throws `address_not_allowed` without any.
 */
export async function permittedAnswers(
  deps: Pick<GuardedConnectorDeps, 'guard' | 'lookup' | 'port'>,
  name: string,
  all = false,
): Promise<readonly LookupAnswer[]> {
  const { guard, port } = deps;
  const answers = await deps.lookup(name);
  const permitted = answers.filter(({ address }) =>
    guard.permits({ hostname: name, address, port }),
  );
  if (permitted.length === 0 || (all && permitted.length < answers.length)) throw notAllowed(name);
  return permitted;
}

/** The refusal of a host. */
export function notAllowed(hostname: string): HttpError {
  return new HttpError('address_not_allowed', `${hostname} is not a public address`);
}
