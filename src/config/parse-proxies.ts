import { createHash } from 'node:crypto';
import { DIRECT, type PoolProxy, type ProxyPool, TOR } from '../domain/proxy-pools.ts';

/** Sessions of a gateway whose pool does not say how many. */
const GATEWAY_SESSIONS = 100;
const MAX_PROXIES = 10_000;
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const COUNTRY = /^[A-Z]{2}$/;
const PLACES = /\{(session|country)\}|%7B(session|country)%7D/;

/**
 * Parses `PROXIES`: a JSON object of pools by name. A name that is a country, or `*`, is also the
 * pool's only country. The value is a proxy URL, a list of them, or an object. Messages name the
 * pool, never a URL, which has a password.
 */
export function parseProxies(value: string): readonly ProxyPool[] {
  if (value === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    // The error of the parser has a part of the text in it.
    throw new Error('must be JSON, for example {"DE":"http://user:password@proxy:8080"}');
  }
  if (!isObject(parsed)) throw new Error('must be a JSON object from pool or country to proxies');
  return Object.entries(parsed).map(([name, pool]) => parsePool(name, pool));
}

function parsePool(name: string, value: unknown): ProxyPool {
  const isCountry = COUNTRY.test(name) || name === '*';
  if (!isCountry && (!NAME.test(name) || name === DIRECT)) {
    throw new Error(
      `"${name}" is neither a two-letter upper-case country, nor *, nor a name of lower-case letters, digits, - and _`,
    );
  }
  const pool = isObject(value) ? value : { proxies: value };
  const unknown = Object.keys(pool).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new Error(`the pool ${name} takes ${KEYS.join(', ')}`);
  const countries = parseCountries(name, pool['countries'] ?? (isCountry ? [name] : []));
  const proxies = 'gateway' in pool ? parseGateway(name, pool) : parseList(name, pool['proxies']);
  if (proxies.length === 0) throw new Error(`the pool ${name} has no proxy`);
  if (name === TOR && (proxies.length > 1 || proxies[0]?.url === undefined)) {
    throw new Error(`the proxy of ${TOR} must be one URL`);
  }
  const needsCountry = proxies.some(
    ({ url }) => url !== undefined && /country/.test(placesOf(url)),
  );
  if (needsCountry && !countries.some((country) => country !== '*')) {
    throw new Error(`the pool ${name} needs countries for {country}`);
  }
  return { name, countries, proxies };
}

const KEYS: readonly string[] = ['proxies', 'gateway', 'sessions', 'countries'];

function parseCountries(name: string, value: unknown): readonly string[] {
  const countries: readonly unknown[] = Array.isArray(value) ? value : [value];
  return countries.map((country) => {
    if (typeof country === 'string' && (COUNTRY.test(country) || country === '*')) return country;
    throw new Error(`the countries of the pool ${name} must be two-letter upper-case codes, or *`);
  });
}

function parseList(name: string, value: unknown): readonly PoolProxy[] {
  const urls: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (urls.length > MAX_PROXIES) {
    throw new Error(`the pool ${name} has more than ${MAX_PROXIES} proxies`);
  }
  const distinct = [...new Set(urls)];
  return distinct.map((url): PoolProxy => {
    if (url === DIRECT && distinct.length === 1) {
      return { id: DIRECT, label: DIRECT, endpoint: DIRECT, url: undefined };
    }
    const { text, label } = parseProxyUrl(name, url);
    if (/session/.test(placesOf(text))) {
      throw new Error(`the pool ${name}: {session} needs "gateway"`);
    }
    const id = idOf(text);
    return { id, label, endpoint: id, url: text };
  });
}

/** The proxies of a gateway are its sessions, each of which it leads out by another address. */
function parseGateway(name: string, pool: Readonly<Record<string, unknown>>): readonly PoolProxy[] {
  const { gateway, sessions = GATEWAY_SESSIONS } = pool;
  const { text, label } = parseProxyUrl(name, gateway);
  const count = typeof sessions === 'number' && Number.isInteger(sessions) ? sessions : 0;
  if (count < 1 || count > MAX_PROXIES) {
    throw new Error(`the sessions of the pool ${name} must be a number from 1 to ${MAX_PROXIES}`);
  }
  const endpoint = idOf(text);
  if (!/session/.test(placesOf(text))) return [{ id: endpoint, label, endpoint, url: text }];
  return Array.from({ length: count }, (_, index) => {
    const session = idOf(`${text} ${index}`);
    const url = text.replaceAll(/\{session\}|%7Bsession%7D/g, session);
    return { id: session, label: `${label} session ${index + 1}`, endpoint, url };
  });
}

function parseProxyUrl(
  name: string,
  value: unknown,
): { readonly text: string; readonly label: string } {
  const url = typeof value === 'string' ? URL.parse(value) : null;
  if (url === null || !/^(https?|socks5):$/.test(url.protocol) || url.hostname === '') {
    throw new Error(`the proxy of ${name} must be an http, https or socks5 URL, or direct`);
  }
  if (PLACES.test(url.host)) throw new Error(`the proxy of ${name} has a place in its host`);
  if (url.protocol === 'socks5:') assertSocksCredentials(name, url);
  return { text: url.href, label: url.host };
}

/** SOCKS5 takes both or neither, of at most 255 bytes (RFC 1929). */
function assertSocksCredentials(name: string, { username, password }: URL): void {
  const isComplete = (username === '') === (password === '');
  if (!isComplete || username.length > 255 || password.length > 255) {
    throw new Error(`the socks5 proxy of ${name} needs a user and a password, or neither`);
  }
}

function placesOf(url: string): string {
  return (url.match(new RegExp(PLACES, 'g')) ?? []).join(' ');
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
