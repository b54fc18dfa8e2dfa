import { type ServiceClock, wallNow } from '../../domain/clock.ts';
import { defined } from '../../domain/defined.ts';
import { DomainError, invalidField } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';
import {
  GATEWAY_SESSIONS,
  hasSessions,
  isPoolName,
  PoolError,
  type PoolInput,
  parsePool,
} from '../../domain/parse-pool.ts';
import { type ProxyPool, TOR } from '../../domain/proxy-pools.ts';
import type { Seal } from '../../domain/seal.ts';
import type { SealedPools, Store } from '../../store/store.ts';

/** A pool as its account has made it. It is kept sealed, and its URLs are shown to nobody. */
export interface OwnPool {
  readonly name: string;
  /** URLs with credentials; undefined for a gateway. */
  readonly proxies?: readonly string[];
  /** The URL of a gateway, which may have places in its credentials. */
  readonly gateway?: string;
  readonly sessions?: number;
  readonly countries: readonly string[];
  /** By the clock that people see, in milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** What a pool is made of, or is changed to; what is absent stays as it is. */
export type OwnPoolInput = Partial<Pick<OwnPool, 'proxies' | 'gateway' | 'sessions' | 'countries'>>;

/** The pools of an account, as they were read. */
export interface ReadPools {
  readonly version: number;
  readonly own: readonly OwnPool[];
  /** The same, to be crawled through. */
  readonly pools: readonly ProxyPool[];
}

/** A pool of an account, and what crawls go through. */
export interface OwnPoolDetails {
  readonly own: OwnPool;
  readonly pool: ProxyPool;
}

/**
 * The pools of proxies that accounts make for themselves. Pools that no key opens are dropped when
 * their account makes a pool, replaces the URLs of one, or removes one.
 */
export interface AccountPools {
  /** The pools of an account, if their version is another than `known`. */
  read(accountId: string, known: number): Promise<ReadPools | undefined>;
  /** By name. */
  list(accountId: string): Promise<OwnPoolDetails[]>;
  /** Throws `not_found`, as do the next two. */
  get(accountId: string, name: string): Promise<OwnPoolDetails>;
  /** Throws `invalid` naming the field. */
  update(accountId: string, name: string, input: OwnPoolInput): Promise<OwnPoolDetails>;
  remove(accountId: string, name: string): Promise<void>;
  /**
   * Throws `conflict` if the account has a pool of this name, and `invalid` naming the field. Each change
   * throws `failed_precondition` when too many others come first.
   */
  create(accountId: string, name: string, input: OwnPoolInput): Promise<OwnPoolDetails>;
  /** Looks at the pools of {@link MAX_SURVEYED} accounts at most. */
  survey(): Promise<PoolSurvey>;
}

/** Which accounts have pools. */
export interface PoolSurvey {
  /** Accounts whose pools a key opens. */
  readonly opened: number;
  /** The names of accounts whose pools no key opens. */
  readonly sealed: readonly string[];
}

/** Whether the pools of an account could not be read because of their key. */
export function isOfOtherKey(error: unknown): boolean {
  return error instanceof DomainError && error.reason === 'pools_sealed';
}

/** The error of a crawl that needs pools which no key of the service opens. */
export function poolsSealed(): DomainError {
  return new DomainError(
    'failed_precondition',
    'pools_sealed',
    'The pools of the account were sealed with another PROXY_SEAL_KEY than the service has now. To make, replace or remove a pool drops them all.',
  );
}

/** What is sealed. The account's id keeps the pools of one from being taken for another's. */
export interface SealedContent {
  readonly accountId: string;
  readonly own: readonly OwnPool[];
}

/** What accounts may have. */
const MAX_OWN_POOLS = 20;
/** In all pools of an account; the sessions of a gateway count as proxies. */
const MAX_OWN_PROXIES = 1_000;
/** Of all URLs of an account. */
const MAX_URL_BYTES = 256 * 1024;

const MAX_SURVEYED = 1_000;

/** Tries of a change. One fails when another call came first. */
const MAX_ATTEMPTS = 20;

const NOTHING: ReadPools = { version: 0, own: [], pools: [] };

/** Makes the use cases. */
export function createAccountPools(deps: {
  readonly store: Pick<Store, 'proxyPools'> & { readonly accounts: Pick<Store['accounts'], 'get'> };
  readonly seal: Seal<SealedContent>;
  readonly clock: ServiceClock;
  readonly logger: Logger;
  /** Why a proxy can never be connected to; undefined if it may be. */
  readonly whyNotUsable: (proxyUrl: string) => string | undefined;
  /** Called after each change. */
  readonly onChange: (accountId: string) => void;
}): AccountPools {
  const { store, seal, clock, logger } = deps;

  /** Undefined for what no key opens. */
  function opened(accountId: string, { sealed }: SealedPools): readonly OwnPool[] | undefined {
    const content = seal.open(sealed);
    return content?.accountId === accountId ? content.own : undefined;
  }

  async function read(accountId: string, known: number): Promise<ReadPools | undefined> {
    const found = await store.proxyPools.read(accountId, known);
    if (found === undefined) return undefined;
    const own = opened(accountId, found);
    if (own === undefined) throw poolsSealed();
    return { version: found.version, own, pools: own.map((each) => toPool(accountId, each)) };
  }

  /**
   * Applies `by` to the pools, again when another call came first. It is given undefined when no key
   * opens them; what it returns then replaces them.
   */
  async function change(
    accountId: string,
    by: (before: readonly OwnPool[] | undefined) => readonly OwnPool[],
  ): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const found = await store.proxyPools.read(accountId, 0);
      const before = found === undefined ? [] : opened(accountId, found);
      const own = by(before);
      assertBounds(own);
      const sealed = seal.seal({ accountId, own });
      if (await store.proxyPools.replace(accountId, found?.version ?? 0, sealed)) {
        if (before === undefined) {
          logger.warn(
            { accountId },
            'the pools of an account that no PROXY_SEAL_KEY opens were dropped',
          );
        }
        return deps.onChange(accountId);
      }
    }
    throw new DomainError(
      'failed_precondition',
      'pools_changed',
      'Other calls change the pools of the account all the time. Try again.',
    );
  }

  function checked(accountId: string, own: OwnPool): OwnPool {
    assertBounds([own]);
    toPool(accountId, own);
    const urls = own.gateway === undefined ? (own.proxies ?? []) : [own.gateway];
    for (const [at, url] of urls.entries()) {
      const why = deps.whyNotUsable(url);
      const field = own.gateway === undefined ? `proxies[${at}]` : 'gateway';
      if (why !== undefined) throw invalidPool(field, why);
    }
    return own;
  }

  function made(accountId: string, name: string, input: OwnPoolInput): OwnPool {
    if (!isPoolName(name) || name === TOR) {
      throw invalidField(
        'name',
        'name must be 1 to 32 lower-case letters, digits, - and _, begin with a letter, and be neither direct nor tor.',
      );
    }
    const now = wallNow(clock).getTime();
    return checked(accountId, { name, countries: [], ...input, createdAt: now, updatedAt: now });
  }

  return {
    read,

    async list(accountId) {
      const { own, pools } = (await read(accountId, 0)) ?? NOTHING;
      return own.flatMap((each, at) => {
        const pool = pools[at];
        return pool === undefined ? [] : [{ own: each, pool }];
      });
    },

    async get(accountId, name) {
      const found = (await this.list(accountId)).find(({ own }) => own.name === name);
      if (found === undefined) throw poolNotFound(name);
      return found;
    },

    async create(accountId, name, input) {
      const own = made(accountId, name, input);
      await change(accountId, (before = []) => {
        if (before.some((each) => each.name === name)) throw poolExists(name);
        return [...before, own].toSorted((left, right) => (left.name < right.name ? -1 : 1));
      });
      return { own, pool: toPool(accountId, own) };
    },

    async update(accountId, name, input) {
      let changed: OwnPool | undefined;
      await change(accountId, (before) => {
        if (before === undefined) {
          // Nothing is left of the pool but what the call gives.
          if (input.proxies === undefined && input.gateway === undefined) throw poolsSealed();
          changed = made(accountId, name, input);
          return [changed];
        }
        const found = before.find((each) => each.name === name);
        if (found === undefined) throw poolNotFound(name);
        const updatedAt = wallNow(clock).getTime();
        const own = checked(accountId, { ...replaced(found, input), updatedAt });
        changed = own;
        return before.map((each) => (each === found ? own : each));
      });
      if (changed === undefined) throw poolNotFound(name);
      return { own: changed, pool: toPool(accountId, changed) };
    },

    async survey() {
      let openedOnes = 0;
      const sealed: string[] = [];
      // One at a time: the pools of an account may take much memory.
      for (const accountId of await store.proxyPools.owners(MAX_SURVEYED)) {
        const found = await store.proxyPools.read(accountId, 0);
        if (found === undefined) continue;
        if (opened(accountId, found) === undefined) {
          sealed.push((await store.accounts.get(accountId))?.name ?? accountId);
        } else openedOnes += 1;
      }
      return { opened: openedOnes, sealed };
    },

    async remove(accountId, name) {
      await change(accountId, (before) => {
        // Their names are not known.
        if (before === undefined) return [];
        const left = before.filter((each) => each.name !== name);
        if (left.length === before.length) throw poolNotFound(name);
        return left;
      });
    },
  };
}

/** A list in place of a gateway, or the other way round, leaves nothing of what was there. */
function replaced(before: OwnPool, input: OwnPoolInput): OwnPool {
  const { proxies, gateway, sessions, ...kept } = before;
  const isReplaced = input.proxies !== undefined || input.gateway !== undefined;
  const old = isReplaced ? {} : { proxies, gateway };
  const oldSessions = input.proxies === undefined ? sessions : undefined;
  return { ...kept, ...defined({ ...old, sessions: oldSessions, ...input }) };
}

function toPool(accountId: string, own: OwnPool): ProxyPool {
  const { proxies, gateway, sessions, countries } = own;
  if (proxies !== undefined && gateway !== undefined) {
    throw invalidField('gateway', 'gateway takes the place of proxies: give one of them.');
  }
  const input: PoolInput = defined({ proxies: proxies ?? [], gateway, sessions, countries });
  try {
    return parsePool(own.name, input, accountId);
  } catch (error) {
    if (error instanceof PoolError) throw invalidPool(error.field, error.message);
    throw error;
  }
}

function invalidPool(field: string, problem: string): DomainError {
  return invalidField(field, `${field} ${problem}.`, 'invalid_pool');
}

function countProxies({ proxies = [], gateway, sessions = GATEWAY_SESSIONS }: OwnPool): number {
  if (gateway === undefined) return proxies.length;
  return hasSessions(gateway) ? sessions : 1;
}

function assertBounds(own: readonly OwnPool[]): void {
  const proxies = own.reduce((sum, each) => sum + countProxies(each), 0);
  const bytes = own.reduce(
    (sum, { proxies: urls = [], gateway = '' }) => sum + Buffer.byteLength(urls.join('') + gateway),
    0,
  );
  const exceeded =
    own.length > MAX_OWN_POOLS
      ? `${MAX_OWN_POOLS} pools`
      : proxies > MAX_OWN_PROXIES
        ? `${MAX_OWN_PROXIES} proxies in all its pools, with the sessions of gateways`
        : bytes > MAX_URL_BYTES
          ? `${MAX_URL_BYTES} bytes of URLs`
          : undefined;
  if (exceeded === undefined) return;
  throw invalidField('proxies', `An account has at most ${exceeded}.`, 'too_many_proxies');
}

function poolNotFound(name: string): DomainError {
  const options = { field: 'name', resource: { type: 'proxy_pool', name } } as const;
  const message = `The account has no pool "${name}" of its own.`;
  return new DomainError('not_found', 'pool_not_found', message, options);
}

function poolExists(name: string): DomainError {
  const options = { field: 'name', resource: { type: 'proxy_pool', name } } as const;
  const message = `The account has a pool "${name}".`;
  return new DomainError('conflict', 'pool_exists', message, options);
}
