import { type Collections, toCollections } from '../../../../src/store/mongo/collections.ts';
import { openMongoStore } from '../../../../src/store/mongo/mongo-store.ts';
import type { Store } from '../../../../src/store/store.ts';
import { silentLogger } from '../../../support/loggers.ts';
import { type Command, type MongoGate, openMongoGate } from '../../../support/mongo-gate.ts';
import { testDatabase } from '../../../support/mongodb.ts';
import { createBench, type StoreBench } from '../store-harness.ts';

/**
 * Processes on one database. The commands of `stopped` and `pusher` pass the gate; those of the
 * bench, a third process, do not.
 */
export interface Processes {
  readonly bench: StoreBench;
  readonly stopped: Store;
  readonly pusher: Store;
  readonly gate: MongoGate;
  readonly c: Collections;
}

/** A test of two processes. */
export function withProcesses(use: (processes: Processes) => Promise<void>): () => Promise<void> {
  return async () => {
    await using database = testDatabase();
    await using gate = await openMongoGate(database.uri);
    const { store, db } = await openMongoStore({ uri: database.uri, logger: silentLogger });
    const { store: stopped } = await openMongoStore({ uri: gate.uri, logger: silentLogger });
    const { store: pusher } = await openMongoStore({ uri: gate.uri, logger: silentLogger });
    await using _closing = {
      [Symbol.asyncDispose]: async () =>
        void (await Promise.all([store, stopped, pusher].map((each) => each.close()))),
    };
    await use({ bench: createBench({ store }), stopped, pusher, gate, c: toCollections(db) });
  };
}

/** Matches the commit of a transaction. */
export const isCommit = (command: Command): boolean => command.commitTransaction !== undefined;
