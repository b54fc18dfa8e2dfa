import type { CrawlParameters } from '../domain/parameters.ts';
import type { FailureReason } from '../domain/status.ts';

/** Where a crawl starts, or why it cannot start. */
export type CrawlTarget =
  | {
      readonly start: URL;
      /** URL of the operator's proxy that the crawl goes through; undefined for none. */
      readonly proxy: string | undefined;
    }
  | { readonly refused: FailureReason };

/**
 * Resolves the URL and the proxy of a crawl. `proxies` are proxy URLs by ISO country, and `tor`.
 */
export function resolveTarget(
  { url, parameters }: { readonly url: string; readonly parameters: CrawlParameters },
  proxies: Readonly<Record<string, string>>,
): CrawlTarget {
  const start = URL.parse(url);
  if (start === null || !/^https?:$/.test(start.protocol)) return { refused: 'invalid_url' };
  const proxyName = parameters.tor_network === true ? 'tor' : parameters.country;
  if (proxyName === undefined) return { start, proxy: undefined };
  const proxy = proxies[proxyName] ?? (proxyName === 'tor' ? undefined : proxies['*']);
  // The push was accepted, but the operator may have removed the proxy since.
  if (proxy === undefined) return { refused: 'proxy_not_configured' };
  return { start, proxy: proxy === 'direct' ? undefined : proxy };
}
