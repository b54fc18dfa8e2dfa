import { DomainError, type ErrorKind } from '../domain/errors.ts';
import { decorateStore, type StoreOperation } from './decorate-store.ts';
import type { Store } from './store.ts';

/** One finished call of a store. */
export interface StoreCall {
  readonly operation: StoreOperation;
  readonly seconds: number;
  /** `ok`, or the kind of error it ended with. */
  readonly outcome: 'ok' | ErrorKind;
}

/** The same store, which reports every call to `observe` when it ends. `observe` must not throw. */
export function withMetrics(store: Store, observe: (call: StoreCall) => void): Store {
  return decorateStore(store, async (operation, call) => {
    const startedAt = performance.now();
    const ended = (outcome: StoreCall['outcome']) =>
      observe({ operation, seconds: (performance.now() - startedAt) / 1_000, outcome });
    try {
      const value = await call();
      ended('ok');
      return value;
    } catch (error) {
      ended(error instanceof DomainError ? error.kind : 'internal');
      throw error;
    }
  });
}
