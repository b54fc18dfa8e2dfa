import { Resolver } from 'node:dns/promises';
import type { LookupAnswer } from './lookup.ts';

/** What a question to the name servers came to. */
export interface DnsAnswer {
  /** IPv4 first: where there is no IPv6, connections do not begin with a wait for it. */
  readonly addresses: readonly LookupAnswer[];
  /** The least of the answers. */
  readonly ttlSeconds: number;
}

/**
 * A name that has no addresses (`ENOTFOUND`), or none that could be found out now (`EAI_AGAIN`).
 */
export class LookupError extends Error {
  override readonly name = 'LookupError';
  readonly code: 'ENOTFOUND' | 'EAI_AGAIN';

  constructor(code: 'ENOTFOUND' | 'EAI_AGAIN', options?: { readonly cause?: unknown }) {
    super(code === 'ENOTFOUND' ? 'no such name' : 'the name servers do not answer', options);
    this.code = code;
  }
}

/** Asks name servers. */
export interface DnsQuery {
  /** Rejects with {@link LookupError} within the time limit. */
  ask(name: string): Promise<DnsAnswer>;
  /** Takes up the system's name servers anew. */
  reset(): void;
}

/** A server that has not answered by then is asked again: packets get lost. */
const TRY_MS = 2_000;
/**
 * c-ares asks again sooner where answers have been quick, so that these take up the whole of the
 * time limit at the most.
 */
const TRIES = 4;
/** Servers exist that never answer questions for IPv6; those who have IPv4 do not wait for them. */
const OTHER_FAMILY_MS = 500;
const NONE: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME', 'EBADQUERY']);

/**
 * Makes the query over c-ares, which waits for answers without a thread: getaddrinfo would hold one
 * of the few of libuv's pool for each name whose server is silent. Without `servers` it asks those
 * of `/etc/resolv.conf`.
 */
export function createDnsQuery(deps: {
  readonly servers: readonly string[];
  /** Of a whole look-up. */
  readonly timeoutMs: number;
}): DnsQuery {
  let resolver: Resolver | undefined;

  function current(): Resolver {
    if (resolver !== undefined) return resolver;
    resolver = new Resolver({ timeout: TRY_MS, tries: TRIES, maxTimeout: TRY_MS });
    if (deps.servers.length > 0) resolver.setServers(deps.servers);
    return resolver;
  }

  return {
    reset() {
      resolver = undefined;
    },
    async ask(name) {
      const ipv4 = current().resolve4(name, { ttl: true });
      const ipv6 = current().resolve6(name, { ttl: true });
      const [four, six] = await bothWithin(ipv4, ipv6, deps.timeoutMs);
      const records = [
        ...(four.found ?? []).map((record) => ({ ...record, family: 4 as const })),
        ...(six.found ?? []).map((record) => ({ ...record, family: 6 as const })),
      ];
      if (records.length > 0) {
        return {
          addresses: records.map(({ address, family }) => ({ address, family })),
          ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)),
        };
      }
      const isCertain = [four, six].every(({ error }) => NONE.has(codeOf(error)));
      throw new LookupError(isCertain ? 'ENOTFOUND' : 'EAI_AGAIN', {
        cause: four.error ?? six.error,
      });
    },
  };
}

interface End<Found> {
  readonly found?: Found;
  readonly error?: unknown;
}

/** Both ends; empty for one that did not come in time, or not soon after the other had answers. */
function bothWithin<Found extends readonly unknown[]>(
  first: Promise<Found>,
  second: Promise<Found>,
  timeoutMs: number,
): Promise<[End<Found>, End<Found>]> {
  return new Promise((resolve) => {
    const ends: [End<Found>, End<Found>] = [{}, {}];
    let left = 2;
    let timer = setTimeout(() => resolve(ends), timeoutMs);
    const end = (at: 0 | 1, how: End<Found>): void => {
      ends[at] = how;
      left -= 1;
      if (left > 0 && (how.found?.length ?? 0) === 0) return;
      clearTimeout(timer);
      if (left === 0) resolve(ends);
      else timer = setTimeout(() => resolve(ends), Math.min(OTHER_FAMILY_MS, timeoutMs));
    };
    for (const [at, work] of [first, second].entries()) {
      work.then(
        (found) => end(at === 0 ? 0 : 1, { found }),
        (error: unknown) => end(at === 0 ? 0 : 1, { error }),
      );
    }
  });
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
