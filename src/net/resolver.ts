import { isIP } from 'node:net';
import { createLruMap } from '../domain/lru-map.ts';
import { type Claimant, createFairPool, type Grant } from '../fairness/fair-pool.ts';
import { createDnsQuery, type DnsAnswer, LookupError } from './dns-query.ts';
import { parseHosts, parseSearchDomains, watchFile } from './hosts-file.ts';
import type { Lookup, LookupAnswer } from './lookup.ts';

/** How names are looked up; everything has a default. */
export interface ResolverDeps {
  /** Name servers, `address` or `address:port`; none for the system's. */
  readonly servers?: readonly string[];
  /** Default `/etc/hosts`. */
  readonly hostsFile?: string;
  /** Default `/etc/resolv.conf`. */
  readonly resolvConf?: string;
  /** For one look-up, from when its turn has come; default 5,000. */
  readonly timeoutMs?: number;
  /** Look-ups at once; default 256. Accounts that make few share another quarter of that. */
  readonly capacity?: number;
}

const MAX_NAMES = 5_000;
const LEAST_KEPT_MS = 5_000;
const MOST_KEPT_MS = 60_000;
const FAILURE_KEPT_MS = 1_500;
/** How long a look-up waits for its turn. */
const MAX_WAIT_MS = 10_000;
const MAX_WAITING = 5_000;
const NOBODY: Claimant = { accountId: '' };
const LOOPBACK: readonly LookupAnswer[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

interface Known {
  readonly until: number;
  readonly answers: readonly LookupAnswer[] | LookupError;
}

/**
 * Makes the look-up of names. It reads the hosts file, knows `localhost`, and asks name servers for
 * everything else. Only names without a dot are searched for in the domains of `resolv.conf`: what
 * a client means by `shop.example` must not depend on this machine.
 *
 * Answers are cached for their time to live, but at least 5 s and at most a minute; failures for
 * 1.5 s. Accounts take turns at the look-ups, so an account with many names whose servers are
 * silent takes nothing from the others. A cached address is not a judged one: every connection must
 * still pass the address guard.
 */
export function createResolver(deps: ResolverDeps = {}): Lookup {
  const { servers = [], timeoutMs = 5_000, capacity = 256 } = deps;
  const hosts = watchFile(deps.hostsFile ?? '/etc/hosts', parseHosts);
  const query = createDnsQuery({ servers, timeoutMs });
  const resolvConf = watchFile(deps.resolvConf ?? '/etc/resolv.conf', (text) => {
    // The file may list other name servers now.
    query.reset();
    return parseSearchDomains(text);
  });
  const pool = createFairPool({
    name: 'look-ups of names',
    capacity,
    reserve: Math.ceil(capacity / 4),
    maxWaiting: MAX_WAITING,
  });
  const known = createLruMap<string, Known>({ maxEntries: MAX_NAMES });
  const running = new Map<string, Promise<readonly LookupAnswer[]>>();

  function remember(name: string, answers: Known['answers'], keptMs: number): void {
    known.set(name, { until: performance.now() + keptMs, answers });
  }

  /** An answer that is cached, or the look-up of this name that is already running. */
  function recall(name: string): Promise<readonly LookupAnswer[]> | undefined {
    const entry = known.get(name);
    if (entry !== undefined && entry.until > performance.now()) {
      const { answers } = entry;
      return answers instanceof LookupError ? Promise.reject(answers) : Promise.resolve(answers);
    }
    return running.get(name);
  }

  async function askSpellings(name: string): Promise<DnsAnswer> {
    const domains = await resolvConf.read();
    const searched = name.includes('.') ? [] : domains.map((domain) => `${name}.${domain}`);
    const deadline = performance.now() + timeoutMs;
    let failure = new LookupError('ENOTFOUND');
    for (const spelling of [...searched, name]) {
      try {
        return await query.ask(spelling);
      } catch (error) {
        if (!(error instanceof LookupError)) throw error;
        failure = error;
        if (performance.now() >= deadline) break;
      }
    }
    throw failure;
  }

  async function ask(name: string): Promise<readonly LookupAnswer[]> {
    try {
      const { addresses, ttlSeconds } = await askSpellings(name);
      const keptMs = Math.min(Math.max(ttlSeconds * 1_000, LEAST_KEPT_MS), MOST_KEPT_MS);
      remember(name, addresses, keptMs);
      return addresses;
    } catch (error) {
      const failure =
        error instanceof LookupError ? error : new LookupError('EAI_AGAIN', { cause: error });
      remember(name, failure, FAILURE_KEPT_MS);
      throw failure;
    }
  }

  async function waitForTurn(claimant: Claimant): Promise<Grant> {
    const grant = pool.tryAcquire(claimant, 1);
    if (grant !== undefined) return grant;
    try {
      return await pool.acquire(claimant, 1, AbortSignal.timeout(MAX_WAIT_MS));
    } catch (error) {
      throw new LookupError('EAI_AGAIN', { cause: error });
    }
  }

  return async (hostname, claimant = NOBODY) => {
    const name = hostname.toLowerCase().replace(/\.$/, '');
    const family = isIP(name);
    if (family !== 0) return [{ address: name, family: family === 6 ? 6 : 4 }];
    const local = (await hosts.read()).get(name);
    if (local !== undefined) return local;
    // RFC 6761 and RFC 7686: no name server is asked about these.
    if (name === 'localhost' || name.endsWith('.localhost')) return LOOPBACK;
    if (name === '' || name.endsWith('.onion')) throw new LookupError('ENOTFOUND');
    const recalled = recall(name);
    if (recalled !== undefined) return recalled;
    using stack = new DisposableStack();
    const grant = await waitForTurn(claimant);
    stack.defer(() => grant.release());
    // Another look-up of this name may have begun in that time.
    const meanwhile = recall(name);
    if (meanwhile !== undefined) return meanwhile;
    const work = ask(name).finally(() => running.delete(name));
    running.set(name, work);
    return await work;
  };
}
