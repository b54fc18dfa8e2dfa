import { type DomainError, databaseUnavailable } from '../../src/domain/errors.ts';
import { decorateStore, type StoreOperation } from '../../src/store/decorate-store.ts';
import type { Store } from '../../src/store/store.ts';

/** The next calls of an operation go wrong as told; each fault holds for one call, oldest first. */
export interface Faults {
  /** Fails the next call and does nothing. */
  refuse(operation: StoreOperation): void;
  /** Does the next call but fails it, as when the answer is lost on its way. */
  loseAnswer(operation: StoreOperation): void;
  /** Holds the next call back until it is released. */
  hold(operation: StoreOperation): HeldCall;
  /** Does the next call but holds its answer back until it is released. */
  holdAnswer(operation: StoreOperation): HeldCall;
  /** While true every call but `close` fails, and nothing is done. */
  away: boolean;
}

/** A call that waits for the test. */
export interface HeldCall {
  /** Resolves when the call, or its answer, is held. */
  readonly reached: Promise<void>;
  readonly release: () => void;
}

type Fault = <T>(call: () => Promise<T>) => Promise<T>;

/**
 * The same store, whose calls fail as a test asks, with the error a store gives when its database
 * is unavailable.
 */
export function createFaultyStore(store: Store): {
  readonly store: Store;
  readonly faults: Faults;
} {
  const planned = new Map<StoreOperation, Fault[]>();
  const plan = (operation: StoreOperation, fault: Fault) => {
    planned.set(operation, [...(planned.get(operation) ?? []), fault]);
  };
  const planHold = (operation: StoreOperation, held: 'call' | 'answer'): HeldCall => {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    plan(operation, async (call) => {
      const answered = held === 'answer' ? call() : undefined;
      await answered;
      reached.resolve();
      await gate.promise;
      return answered ?? call();
    });
    return { reached: reached.promise, release: gate.resolve };
  };
  const faults: Faults = {
    away: false,
    refuse: (operation) => plan(operation, async () => Promise.reject(unavailable())),
    loseAnswer: (operation) =>
      plan(operation, async (call) => {
        await call();
        throw unavailable();
      }),
    hold: (operation) => planHold(operation, 'call'),
    holdAnswer: (operation) => planHold(operation, 'answer'),
  };
  const faulty = decorateStore(store, async (operation, call) => {
    if (faults.away && operation !== 'close') throw unavailable();
    const fault = planned.get(operation)?.shift();
    return fault ? fault(call) : call();
  });
  return { store: faulty, faults };
}

function unavailable(): DomainError {
  return databaseUnavailable('The test took the database away');
}
