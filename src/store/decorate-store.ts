import type { Store } from './store.ts';

/** A method of an aggregate, such as `queue.push`, or of the store itself, such as `ping`. */
export type StoreOperation = string;

/** Runs around each call of a store, and must run `call` itself. */
export type AroundCall = <T>(operation: StoreOperation, call: () => Promise<T>) => Promise<T>;

/** The same store with `around` around every call. */
export function decorateStore(store: Store, around: AroundCall): Store {
  const { traits, transactions, ping, maintain, close, ...aggregates } = store;
  const methods = Object.entries(aggregates).map(([name, aggregate]) => [
    name,
    aggregate && decorated(aggregate, name, around),
  ]);
  return {
    ...(Object.fromEntries(methods) as typeof aggregates),
    traits,
    transactions,
    ping: () => around('ping', ping),
    maintain: (now, signal) => around('maintain', () => maintain(now, signal)),
    close: () => around('close', close),
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
