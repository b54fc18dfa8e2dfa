import { hashText } from './hash-text.ts';

/** One proxy of a pool. */
export interface PoolProxy {
  /**
   * Stable while its URL is. It is derived from the URL with its password, so it is shown to nobody.
   */
  readonly id: string;
  /** As people see it, without credentials: `proxy.example:8080`, with the session of a gateway. */
  readonly label: string;
  /** What fails together: the proxies of one gateway share it. */
  readonly endpoint: string;
  /** Its URL with credentials, in which `{country}` may stand; undefined for a direct connection. */
  readonly url: string | undefined;
}

/** Proxies that stand for each other. */
export interface ProxyPool {
  readonly name: string;
  /** The account whose pool it is; undefined for one of the operator. */
  readonly accountId?: string;
  /** ISO countries that its sites see; `*` for all that no other pool has. */
  readonly countries: readonly string[];
  readonly proxies: readonly PoolProxy[];
}

/** Why a proxy is not used, and until when, in milliseconds of the service time. */
export interface ProxyTrouble {
  readonly reason: string;
  readonly untilMs: number;
}

/** What a proxy has done since this process started. */
export interface ProxyNumbers {
  readonly pages: number;
  /** Block pages, and 429. */
  readonly blocks: number;
  readonly failures: number;
  /** Why it last failed or refused a crawl, with its status or a code: `proxy_failed (407)`. */
  readonly lastFailure?: string;
  /** Bytes. */
  readonly received: number;
  readonly sent: number;
}

/** A proxy as the operator sees it. */
export interface ProxyReport extends ProxyNumbers {
  readonly pool: string;
  /** Its place in the pool, from 0 on. */
  readonly index: number;
  readonly label: string;
  /** Why it has a cool-down for everyone; undefined if it has none. */
  readonly trouble: ProxyTrouble | undefined;
  /** Hosts that block it, for one account at least; a few of them. */
  readonly blockedAt: readonly string[];
  /** The hosts with the most bytes lately; a few of them. */
  readonly hosts: readonly ProxyHostNumbers[];
  /** Whether its URL has a user name or a password. */
  readonly hasPassword: boolean;
}

/** What the crawls of a host have done through the proxies of a pool. */
export interface ProxyHostReport extends ProxyHostNumbers {
  readonly pool: string;
}

/** What the crawls of a host have done through a proxy. */
export interface ProxyHostNumbers extends Pick<ProxyNumbers, 'pages' | 'blocks' | 'failures'> {
  readonly host: string;
  /** Of requests and responses, in both directions. */
  readonly bytes: number;
}

/** Which pools a crawl asks for. */
export interface PoolWish {
  /** The name of a pool; `direct` for no proxy. */
  readonly proxy?: string | undefined;
  readonly country?: string | undefined;
  readonly tor_network?: boolean | undefined;
}

/** Name of the pool that leads to Tor. */
export const TOR = 'tor';
/** In place of a pool's name, and of a proxy: no proxy. */
export const DIRECT = 'direct';
/**
 * Ends the URL of a proxy that an account has chosen. It is only connected to if the address guard
 * permits it. As a part of the URL it also keeps apart what is kept by URL, such as connections.
 */
export const GUARDED = '#guarded';

const hasCountry = ({ countries }: ProxyPool, country: string): boolean =>
  countries.includes(country);

/** The pools that an account may use: the operator's, but for a name its own pool of that name. */
export function usablePools(
  operators: readonly ProxyPool[],
  own: readonly ProxyPool[],
): readonly ProxyPool[] {
  if (own.length === 0) return operators;
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...operators.filter(({ name }) => !names.has(name))];
}

/** Whether a crawl goes through no pool, whatever pools there are. */
export function isDirect({ proxy, country, tor_network: tor }: PoolWish): boolean {
  if (tor === true) return false;
  return proxy === DIRECT || (proxy === undefined && country === undefined);
}

/**
 * The pools that a crawl may go through: none for a direct connection. Undefined when no pool is as
 * the crawl asks for. A country picks the pools that name it, else those for every other country.
 * Those of an account come first: it does not share them, and does not mix them with the operator's.
 */
export function findPools(
  pools: readonly ProxyPool[],
  { proxy, country, tor_network: tor }: PoolWish,
): readonly ProxyPool[] | undefined {
  if (isDirect({ proxy, country, tor_network: tor })) return [];
  const name = tor === true ? TOR : proxy;
  if (name !== undefined) {
    const pool = pools.find((each) => each.name === name);
    if (pool === undefined) return undefined;
    const isThere =
      name === TOR || country === undefined || hasCountry(pool, country) || hasCountry(pool, '*');
    return isThere ? [pool] : undefined;
  }
  for (const wanted of [country ?? '', '*']) {
    const found = pools.filter((pool) => hasCountry(pool, wanted));
    const own = found.filter(({ accountId }) => accountId !== undefined);
    if (found.length > 0) return own.length > 0 ? own : found;
  }
  return undefined;
}

/**
 * The URL of a proxy of a pool, for a crawl that asks for a country. Without one, a gateway gets one
 * of its pool's countries, the same each time.
 */
export function proxyUrl(
  { countries }: ProxyPool,
  { url, id }: PoolProxy,
  country: string | undefined,
): string | undefined {
  if (url?.includes('%7Bcountry%7D') !== true && url?.includes('{country}') !== true) return url;
  const wanted = country ?? countries[spreadHash(id) % countries.length] ?? '';
  return url.replaceAll(/%7Bcountry%7D|\{country\}/g, wanted.toLowerCase());
}

/** A number from 0 to 2^32 - 1 for a text, all of whose bits are spread. */
export function spreadHash(text: string): number {
  return mix(hashText(text));
}

/** Spreads the bits of a number, and those of two numbers (the last step of MurmurHash3). */
export function mix(number: number, other = 0): number {
  let hash = number ^ Math.imul(other, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
