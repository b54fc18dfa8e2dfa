import { createHash } from 'node:crypto';
import { DIRECT, GUARDED, type PoolProxy, type ProxyPool } from './proxy-pools.ts';

/** A pool as it is set up; nothing is validated. */
export type PoolInput = Readonly<Partial<Record<(typeof KEYS)[number], unknown>>>;

/** What is wrong with a pool: the field, and what it has to be. Never a URL, which has a password. */
export class PoolError extends Error {
  override readonly name = 'PoolError';
  /** `proxies[2]`, `gateway`, `sessions` or `countries`. */
  readonly field: string;

  constructor(field: string, problem: string) {
    super(problem);
    this.field = field;
  }
}

/** Fields of a pool. */
const KEYS = ['proxies', 'gateway', 'sessions', 'countries'] as const;
/** Sessions of a gateway whose pool does not say how many. */
export const GATEWAY_SESSIONS = 100;
/** Longest URL of a proxy; a gateway's is kept once for each session. */
const MAX_URL_LENGTH = 2_048;
/** Most proxies of a pool. */
const MAX_PROXIES = 10_000;
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const COUNTRY = /^[A-Z]{2}$/;
const PLACES = /\{(session|country)\}|%7B(session|country)%7D/;

/** Whether a pool may have this name; those of countries are apart. */
export function isPoolName(name: string): boolean {
  return NAME.test(name) && name !== DIRECT;
}

/** Whether a pool may have this country: an ISO code, or `*`. */
export function isCountry(name: string): boolean {
  return COUNTRY.test(name) || name === '*';
}

/**
 * Parses a pool of the operator, or of the account `accountId`. The connections to the proxies of an
 * account are judged by the address guard. Throws {@link PoolError}.
 */
export function parsePool(name: string, pool: PoolInput, accountId?: string): ProxyPool {
  const unknown = Object.keys(pool).find((key) => !KEYS.some((known) => known === key));
  if (unknown !== undefined) throw new PoolError(unknown, `must be one of ${KEYS.join(', ')}`);
  const countries = parseCountries(pool.countries ?? (isCountry(name) ? [name] : []));
  const proxies = pool.gateway === undefined ? parseList(pool.proxies) : parseGateway(pool);
  const needsCountry = proxies.some(
    ({ url }) => url !== undefined && /country/.test(placesOf(url)),
  );
  if (needsCountry && !countries.some((country) => country !== '*')) {
    throw new PoolError('countries', 'must name a country for {country}');
  }
  if (accountId === undefined) return { name, countries, proxies };
  return { name, countries, proxies: proxies.map(toGuarded), accountId };
}

function toGuarded(proxy: PoolProxy): PoolProxy {
  if (proxy.url !== undefined) return { ...proxy, url: proxy.url + GUARDED };
  throw new PoolError('proxies[0]', 'must be an http, https or socks5 URL');
}

function parseCountries(value: unknown): readonly string[] {
  const countries: readonly unknown[] = Array.isArray(value) ? value : [value];
  return countries.map((country) => {
    if (typeof country === 'string' && isCountry(country)) return country;
    throw new PoolError('countries', 'must be two-letter upper-case codes, or *');
  });
}

function parseList(value: unknown): readonly PoolProxy[] {
  const urls: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (urls.length > MAX_PROXIES) {
    throw new PoolError('proxies', `must be at most ${MAX_PROXIES} URLs`);
  }
  if (urls.length === 0) throw new PoolError('proxies', 'must have a proxy');
  const isOnly = new Set(urls).size === 1;
  const found = new Map<string, PoolProxy>();
  for (const [at, url] of urls.entries()) {
    const proxy = url === DIRECT && isOnly ? DIRECTLY : parseProxy(`proxies[${at}]`, url);
    found.set(proxy.id, proxy);
  }
  return [...found.values()];
}

const DIRECTLY: PoolProxy = { id: DIRECT, label: DIRECT, endpoint: DIRECT, url: undefined };

function parseProxy(field: string, url: unknown): PoolProxy {
  const { text, label } = parseProxyUrl(field, url);
  if (hasSessions(text)) {
    throw new PoolError(field, 'has {session}, which needs "gateway"');
  }
  const id = idOf(text);
  return { id, label, endpoint: id, url: text };
}

/** The proxies of a gateway are its sessions, each of which it leads out by another address. */
function parseGateway({ gateway, sessions = GATEWAY_SESSIONS }: PoolInput): readonly PoolProxy[] {
  const { text, label } = parseProxyUrl('gateway', gateway);
  const count = typeof sessions === 'number' && Number.isInteger(sessions) ? sessions : 0;
  if (count < 1 || count > MAX_PROXIES) {
    throw new PoolError('sessions', `must be a number from 1 to ${MAX_PROXIES}`);
  }
  const endpoint = idOf(text);
  if (!hasSessions(text)) return [{ id: endpoint, label, endpoint, url: text }];
  return Array.from({ length: count }, (_, index) => {
    const session = idOf(`${text} ${index}`);
    const url = text.replaceAll(/\{session\}|%7Bsession%7D/g, session);
    return { id: session, label: `${label} session ${index + 1}`, endpoint, url };
  });
}

function parseProxyUrl(
  field: string,
  value: unknown,
): { readonly text: string; readonly label: string } {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (url === null || !/^(https?|socks5):$/.test(url.protocol) || url.hostname === '') {
    throw new PoolError(field, 'must be an http, https or socks5 URL, or direct');
  }
  if (url.href.length > MAX_URL_LENGTH) {
    throw new PoolError(field, `must have at most ${MAX_URL_LENGTH} characters`);
  }
  if (PLACES.test(url.host)) throw new PoolError(field, 'has a place in its host');
  if (url.protocol === 'socks5:') assertSocksCredentials(field, url);
  url.hash = '';
  return { text: url.href, label: url.host };
}

/** SOCKS5 takes both or neither, of at most 255 bytes (RFC 1929). */
function assertSocksCredentials(field: string, { username, password }: URL): void {
  const isComplete = (username === '') === (password === '');
  if (!isComplete || username.length > 255 || password.length > 255) {
    throw new PoolError(field, 'needs a user and a password, or neither');
  }
}

/** Whether a gateway makes a proxy of each session. */
export function hasSessions(gateway: string): boolean {
  return /session/.test(placesOf(gateway));
}

function placesOf(url: string): string {
  return (url.match(new RegExp(PLACES, 'g')) ?? []).join(' ');
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
