import { connect as connectTcp, type Socket } from 'node:net';
import { defined } from '../domain/defined.ts';
import type { Claimant } from '../fairness/fair-pool.ts';
import type { AddressGuard } from './address-guard.ts';
import { permittedLookup } from './guarded-connector.ts';
import type { Lookup } from './lookup.ts';
import { untilConnected } from './proxy-tunnel.ts';
import { connectThroughProxy, type ProxyRoute } from './tunnel-connector.ts';

/** Where a connection is to go. */
export interface ConnectTarget {
  /** A name, or an address; IPv6 without brackets. */
  readonly hostname: string;
  readonly port: number;
}

/** How targets are connected to. */
export interface TargetConnectorDeps {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  /** URL of the operator's proxy that every connection goes through. */
  readonly upstream?: string | undefined;
  /** As in {@link ProxyRoute}. */
  readonly torProxy?: ProxyRoute['torProxy'];
  readonly proxyTarget?: ProxyRoute['proxyTarget'];
  readonly ca?: ProxyRoute['ca'];
  /** On whose behalf. */
  readonly claimant?: Claimant | undefined;
}

/**
 * Connects to a target that the guard permits, directly or through the operator's proxy. A name is
 * looked up once, and the addresses connected to are the ones that were judged. Rejects with an
 * `HttpError` or with the socket's error.
 */
export function connectToTarget(deps: TargetConnectorDeps, target: ConnectTarget): Promise<Socket> {
  const { upstream, claimant } = deps;
  if (upstream === undefined) return connectDirectly(deps, target);
  return connectThroughProxy({ ...deps, proxyUrl: upstream }, target, defined({ claimant }));
}

async function connectDirectly(
  deps: TargetConnectorDeps,
  { hostname, port }: ConnectTarget,
): Promise<Socket> {
  const { guard, lookup, claimant } = deps;
  const socket = connectTcp({
    host: hostname,
    port,
    lookup: await permittedLookup({ guard, lookup, port }, hostname, { claimant }),
    // An address that does not answer in a moment is passed over.
    autoSelectFamily: true,
  });
  return untilConnected(socket, 'connect');
}
