import { isJsonObject } from '../domain/is-json-object.ts';
import { isCountry, isPoolName, PoolError, parsePool } from '../domain/parse-pool.ts';
import { type ProxyPool, TOR } from '../domain/proxy-pools.ts';

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
  if (!isJsonObject(parsed))
    throw new Error('must be a JSON object from pool or country to proxies');
  return Object.entries(parsed).map(([name, pool]) => parseEntry(name, pool));
}

function parseEntry(name: string, value: unknown): ProxyPool {
  if (!isCountry(name) && !isPoolName(name)) {
    throw new Error(
      `"${name}" is neither a two-letter upper-case country, nor *, nor a name of lower-case letters, digits, - and _`,
    );
  }
  let pool: ProxyPool;
  try {
    pool = parsePool(name, isJsonObject(value) ? value : { proxies: value });
  } catch (error) {
    if (!(error instanceof PoolError)) throw error;
    throw new Error(`the pool ${name}: ${error.field} ${error.message}`, { cause: error });
  }
  if (name === TOR && (pool.proxies.length > 1 || pool.proxies[0]?.url === undefined)) {
    throw new Error(`the proxy of ${TOR} must be one URL`);
  }
  return pool;
}
