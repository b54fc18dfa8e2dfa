import { type Dispatcher, ProxyAgent } from 'undici';
import { httpError } from './http-failures.ts';
import { ABANDONED_CONNECT_MS, MAX_HEADER_BYTES } from './origin-pools.ts';

/** Proxies of the operator, each with the connections made through it. */
export interface Proxies {
  /** Throws `proxy_failed` for a URL that is no http or https one. */
  dispatcher(proxyUrl: string): Dispatcher;
  destroy(): Promise<void>;
}

/**
 * Makes an empty set. https targets, and http ones as well, are reached by CONNECT, so that the proxy sees no headers. The proxies
 * are the operator's own and may be at private addresses.
 */
export function createProxies(deps: { readonly ca: string | undefined }): Proxies {
  const agents = new Map<string, ProxyAgent>();
  const tls = deps.ca === undefined ? {} : { ca: deps.ca };
  return {
    dispatcher(proxyUrl) {
      const known = agents.get(proxyUrl);
      if (known !== undefined) return known;
      const url = URL.parse(proxyUrl);
      if (url === null || !/^https?:$/.test(url.protocol)) throw httpError('proxy_failed');
      const agent = new ProxyAgent({
        uri: url.href,
        proxyTunnel: true,
        proxyTls: { ...tls, allowH2: false, timeout: ABANDONED_CONNECT_MS },
        requestTls: { ...tls, timeout: ABANDONED_CONNECT_MS },
        maxHeaderSize: MAX_HEADER_BYTES,
        bodyTimeout: 0,
      });
      agents.set(proxyUrl, agent);
      return agent;
    },
    async destroy() {
      await Promise.all([...agents.values()].map((agent) => agent.destroy()));
      agents.clear();
    },
  };
}
