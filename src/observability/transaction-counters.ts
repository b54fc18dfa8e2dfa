import { Counter, type Registry } from 'prom-client';
import type { Store } from '../store/store.ts';

/** Counts the transactions of this process on the database by their end. */
export function createTransactionCounters(
  registry: Registry,
  read: NonNullable<Store['transactions']>,
): void {
  new Counter({
    name: 'queued_crawler_database_transactions_total',
    help: 'Transactions on MongoDB by their end: committed, or aborted, which is mostly tried again.',
    labelNames: ['end'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [end, count] of Object.entries(read())) this.inc({ end }, count);
    },
  });
}
