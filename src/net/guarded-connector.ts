import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import buildConnector from 'undici/lib/core/connect.js';
import { defined } from '../domain/defined.ts';
import { type CrawlStep, startStopwatch } from '../domain/job-try.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard, AddressRefusal } from './address-guard.ts';
import { HttpError } from './http-client.ts';
import { dispatchingFor, type Lookup, type LookupAnswer } from './lookup.ts';
import { createSessionKeeper, MAX_CACHED_SESSIONS, sharedSecureContext } from './tls-sessions.ts';

/** What connections to one origin need. */
export interface GuardedConnectorDeps {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** Host of the origin; an IPv6 address without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Certificate authorities, PEM; Node's own when undefined. */
  readonly ca: string | undefined;
  readonly http2: boolean;
  /** An attempt to connect ends after this time, even when no request waits for it any more. */
  readonly timeoutMs: number;
  /** Called with each socket as soon as it exists. */
  readonly onSocket: (socket: Socket) => void;
  readonly onConnected: (socket: Socket, steps: readonly CrawlStep[]) => void;
}

/**
 * Makes a connector for undici that refuses addresses the guard does not permit
 * (`address_not_allowed`). The addresses judged are the ones connected to. A name is looked up once
 * for each connection, and the socket is given only the permitted answers. So a name server that
 * changes its answer between look-ups gains nothing. A connection is judged when it is made, not
 * when it is reused.
 */
export function createGuardedConnector(deps: GuardedConnectorDeps): buildConnector.connector {
  const { guard, hostname, port } = deps;
  const judge = (address: string): AddressRefusal | undefined =>
    guard.refusal({ hostname, address, port });

  const lookup: LookupFunction = (name, options, callback) => {
    permittedAnswers(deps, name, { claimant: dispatchingFor.getStore() }).then(
      (answers) => lookupOf(answers)(name, options, callback),
      (error: unknown) => callback(error as Error, []),
    );
  };

  const connect = buildConnector({
    timeout: deps.timeoutMs,
    allowH2: deps.http2,
    maxCachedSessions: MAX_CACHED_SESSIONS,
    lookup,
    secureContext: sharedSecureContext(deps.ca),
  }) as (...args: Parameters<buildConnector.connector>) => Socket;

  const keepSession = createSessionKeeper();

  return (options, callback) => {
    const refusal = isIP(hostname) === 0 ? undefined : judge(hostname);
    if (refusal !== undefined) {
      callback(notAllowed(hostname, refusal), null);
      return;
    }
    const socket = connect(
      withServerName(options),
      (...[error, connected]: Parameters<buildConnector.Callback>) => {
        if (error !== null) {
          callback(error, null);
          return;
        }
        const { remoteAddress } = connected;
        const reached = remoteAddress === undefined ? undefined : judge(remoteAddress);
        if (reached !== undefined) {
          connected.destroy();
          callback(notAllowed(hostname, reached), null);
        } else {
          deps.onConnected(connected, steps());
          callback(null, connected);
        }
      },
    );
    const steps = timeConnection(socket, options.protocol === 'https:');
    keepSession(socket);
    deps.onSocket(socket);
  };
}

/** What undici connects to, with a server name, which has no dot at its end and is no address (RFC 6066, 3). */
export function withServerName(options: buildConnector.Options): buildConnector.Options {
  const { hostname } = options;
  const name = options.servername ?? (isIP(hostname) === 0 ? hostname : undefined);
  return { ...options, ...defined({ servername: name?.replace(/\.$/, '') }) };
}

/** Times the parts of a connection that is being made; call the result once it is made. */
function timeConnection(socket: Socket, isTls: boolean): () => CrawlStep[] {
  const watch = startStopwatch();
  // Before the listener of undici, which asks for the steps.
  socket.prependOnceListener('lookup', () => watch.lap('name'));
  socket.prependOnceListener('connect', () => watch.lap('connect'));
  return () => {
    if (isTls) watch.lap('tls');
    return watch.steps();
  };
}

/**
 * The addresses of `name` that may be connected to. Throws the first refusal when no address may be
 * connected to; with `all`, for connections that a proxy makes by the name, also when a single one
 * is refused.
 */
async function permittedAnswers(
  deps: Pick<GuardedConnectorDeps, 'guard' | 'lookup' | 'port'>,
  name: string,
  { all = false, claimant }: { readonly all?: boolean; readonly claimant?: Claimant | undefined },
): Promise<readonly LookupAnswer[]> {
  const { guard, port } = deps;
  const permitted: LookupAnswer[] = [];
  let refusal: AddressRefusal = 'address_not_allowed';
  const answers = await deps.lookup(name, claimant);
  for (const answer of answers.toReversed()) {
    const refused = guard.refusal({ hostname: name, address: answer.address, port });
    if (refused === undefined) permitted.unshift(answer);
    else refusal = refused;
  }
  if (permitted.length === 0 || (all && permitted.length < answers.length))
    throw notAllowed(name, refusal);
  return permitted;
}

/**
 * The addresses of a host, which may itself be one, that may be connected to. Throws as
 * {@link permittedAnswers} does.
 */
export async function permittedAddresses(
  deps: Pick<GuardedConnectorDeps, 'guard' | 'lookup' | 'port'>,
  hostname: string,
  options: { readonly all?: boolean; readonly claimant?: Claimant | undefined },
): Promise<readonly string[]> {
  if (isIP(hostname) === 0) {
    const answers = await permittedAnswers(deps, hostname, options);
    return answers.map(({ address }) => address);
  }
  const refusal = deps.guard.refusal({ hostname, address: hostname, port: deps.port });
  if (refusal !== undefined) throw notAllowed(hostname, refusal);
  return [hostname];
}

/**
 * A look-up by which Node connects to the addresses that {@link permittedAddresses} returns. Throws as
 * that does.
 */
export async function permittedLookup(
  ...judged: Parameters<typeof permittedAddresses>
): Promise<LookupFunction> {
  const addresses = await permittedAddresses(...judged);
  return lookupOf(addresses.map((address) => ({ address, family: isIP(address) })));
}

/** A look-up that has these answers for each name. */
export function lookupOf(answers: readonly LookupAddress[]): LookupFunction {
  return (_name, { all }, callback) => {
    if (all === true) callback(null, [...answers]);
    else callback(null, answers[0]?.address ?? '', answers[0]?.family);
  };
}

/** The error of a connection that the guard refused. */
function notAllowed(hostname: string, refusal: AddressRefusal): HttpError {
  return new HttpError(
    refusal,
    refusal === 'address_not_allowed'
      ? `${hostname} is not a public address`
      : `the port is not one of HTTP, and NETWORK_ALLOW does not name ${hostname} with it`,
  );
}
