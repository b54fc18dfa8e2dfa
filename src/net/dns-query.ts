import { Resolver } from 'node:dns/promises';
import { open } from 'node:fs/promises';
import { devNull } from 'node:os';
import { errorCode } from './http-failures.ts';
import type { LookupAnswer } from './lookup.ts';

/** The addresses of a name, as name servers gave them. */
export interface DnsAnswer {
  /**
   * IPv4 first: on a machine without IPv6, connections would otherwise begin with a failing
   * attempt.
   */
  readonly addresses: readonly LookupAnswer[];
  /** The shortest time to live among the answers. */
  readonly ttlSeconds: number;
}

/**
 * The name has no addresses (`ENOTFOUND`), or they cannot be determined now (`EAI_AGAIN`), or not
 * without a file descriptor (`EMFILE`, `ENFILE`).
 */
export class LookupError extends Error {
  override readonly name = 'LookupError';
  readonly code: keyof typeof MESSAGES;

  constructor(code: keyof typeof MESSAGES, options?: { readonly cause?: unknown }) {
    super(MESSAGES[code], options);
    this.code = code;
  }
}

const MESSAGES = {
  ENOTFOUND: 'no such name',
  EAI_AGAIN: 'the name servers do not answer',
  EMFILE: 'no file descriptor is left to ask a name server',
  ENFILE: 'the machine has no file descriptor left to ask a name server',
} as const;

/** Asks name servers. */
export interface DnsQuery {
  /** Rejects with {@link LookupError} within the time limit. */
  ask(name: string): Promise<DnsAnswer>;
  /** Reads the system's name servers again. */
  reset(): void;
}

/** A server that has not answered by then is asked again, because packets get lost. */
const TRY_MS = 2_000;
/**
 * c-ares waits less where answers have been quick, so all tries together stay within the time
 * limit.
 */
const MAX_TRIES = 4;
/** How long IPv4 addresses wait for those of IPv6: some servers never answer questions for IPv6. */
const OTHER_FAMILY_MS = 500;
const NONE: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME', 'EBADQUERY']);

/**
 * Makes the query over c-ares, which needs no thread while it waits: getaddrinfo would occupy one
 * of libuv's few threads for each name whose server is silent. Without `servers` it asks those of
 * `/etc/resolv.conf`.
 */
export function createDnsQuery(deps: {
  readonly servers: readonly string[];
  /** For one whole look-up. */
  readonly timeoutMs: number;
}): DnsQuery {
  let resolver: Resolver | undefined;

  function current(): Resolver {
    if (resolver !== undefined) return resolver;
    resolver = new Resolver({ timeout: TRY_MS, tries: MAX_TRIES, maxTimeout: TRY_MS });
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
      const isCertain = [four, six].every(({ error }) => NONE.has(errorCode(error)));
      const cause = four.error ?? six.error;
      // c-ares says so of a server that refuses, and when it gets no socket to ask one.
      const lack = errorCode(cause) === 'ECONNREFUSED' ? await lackOfDescriptors() : undefined;
      throw new LookupError(isCertain ? 'ENOTFOUND' : (lack ?? 'EAI_AGAIN'), { cause });
    },
  };
}

/** Why no file can be opened now, if that is for want of a descriptor. */
async function lackOfDescriptors(): Promise<'EMFILE' | 'ENFILE' | undefined> {
  try {
    await (await open(devNull)).close();
    return undefined;
  } catch (error) {
    const code = errorCode(error);
    return code === 'EMFILE' || code === 'ENFILE' ? code : undefined;
  }
}

interface End<Found> {
  readonly found?: Found;
  readonly error?: unknown;
}

/**
 * Both results; empty for a query that did not end in time, or not soon after the other one had
 * answers.
 */
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
