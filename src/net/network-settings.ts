import type { NetworkAllow } from './network-allow.ts';
import type { NetworkDeny } from './network-deny.ts';

/** What the operator decides about the network: plain values, which can be sent to a thread. */
export interface NetworkSettings {
  readonly allow: NetworkAllow;
  /** Default nothing. */
  readonly deny?: NetworkDeny;
  /** Name servers in place of the system's, `address` or `address:port`. */
  readonly dnsServers?: readonly string[];
  /** URL of the proxy that leads to Tor; names under `.onion` are passed only to it. */
  readonly torProxy?: string | undefined;
  /** What a proxy is asked to connect to; default `address`: one that was judged here. */
  readonly proxyTarget?: 'address' | 'name';
}
