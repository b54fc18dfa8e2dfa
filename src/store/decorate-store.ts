import type { Store } from './store.ts';

/** A method of an aggregate, such as `queue.push`, or of the store itself, such as `ping`. */
export type StoreOperation = string;

/** Runs around each call of a store, and must run `call` itself. */
export type AroundCall = <T>(operation: StoreOperation, call: () => Promise<T>) => Promise<T>;

/** The same store with `around` around every call. */
export function decorateStore(store: Store, around: AroundCall): Store {
  return {
    accounts: decorated(store.accounts, 'accounts', around),
    crawlers: decorated(store.crawlers, 'crawlers', around),
    queue: decorated(store.queue, 'queue', around),
    batches: decorated(store.batches, 'batches', around),
    hosts: decorated(store.hosts, 'hosts', around),
    shares: store.shares && decorated(store.shares, 'shares', around),
    traits: store.traits,
    transactions: store.transactions,
    deliveries: decorated(store.deliveries, 'deliveries', around),
    results: decorated(store.results, 'results', around),
    stats: decorated(store.stats, 'stats', around),
    rates: decorated(store.rates, 'rates', around),
    screenshots: decorated(store.screenshots, 'screenshots', around),
    notices: decorated(store.notices, 'notices', around),
    listings: decorated(store.listings, 'listings', around),
    processes: decorated(store.processes, 'processes', around),
    cookieSessions: decorated(store.cookieSessions, 'cookieSessions', around),
    audit: decorated(store.audit, 'audit', around),
    proxyPools: decorated(store.proxyPools, 'proxyPools', around),
    ping: () => around('ping', () => store.ping()),
    maintain: (now, signal) => around('maintain', () => store.maintain(now, signal)),
    close: () => around('close', () => store.close()),
  };
}

function decorated<Aggregate extends object>(
  aggregate: Aggregate,
  name: string,
  around: AroundCall,
): Aggregate {
  const methods = new Map<PropertyKey, unknown>();
  return new Proxy(aggregate, {
    get(target, property) {
      const known = methods.get(property);
      if (known !== undefined) return known;
      const method: unknown = Reflect.get(target, property);
      if (typeof method !== 'function') return method;
      const operation = `${name}.${String(property)}`;
      const wrapped = (...args: unknown[]) =>
        around(operation, async () => (await Reflect.apply(method, target, args)) as unknown);
      methods.set(property, wrapped);
      return wrapped;
    },
  });
}
