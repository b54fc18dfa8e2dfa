import { lookup as dnsLookup } from 'node:dns/promises';

/** One answer of a look-up. */
export interface LookupAnswer {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Finds all addresses of a name; rejects when there are none. */
export type Lookup = (hostname: string) => Promise<readonly LookupAnswer[]>;

/** Asks the operating system, so that its hosts file and search rules apply. */
export async function systemLookup(hostname: string): Promise<readonly LookupAnswer[]> {
  const answers = await dnsLookup(hostname, { all: true });
  return answers.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));
}

/** How long an answer is used again: a crawl of many pages of a site asks once. */
const KEEP_MS = 10_000;
const MAX_NAMES = 2_000;

/**
 * Asks `lookup` once for callers that ask for the same name at the same time or within ten seconds. Failures are not kept. Whoever
 * uses an answer must still judge it: caching is not what makes an address safe.
 */
export function createCachedLookup(lookup: Lookup): Lookup {
  const cache = new Map<string, { readonly until: number; readonly answers: ReturnType<Lookup> }>();
  return async (hostname) => {
    const now = performance.now();
    const known = cache.get(hostname);
    if (known !== undefined && known.until > now) return known.answers;
    const answers = lookup(hostname);
    const entry = { until: now + KEEP_MS, answers };
    cache.delete(hostname);
    cache.set(hostname, entry);
    for (const oldest of cache.keys()) {
      if (cache.size <= MAX_NAMES) break;
      cache.delete(oldest);
    }
    try {
      return await answers;
    } catch (error) {
      if (cache.get(hostname) === entry) cache.delete(hostname);
      throw error;
    }
  };
}
