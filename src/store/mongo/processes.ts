import type { Db } from 'mongodb';
import { DomainError } from '../../domain/errors.ts';
import type { ProcessStore } from '../process-store.ts';
import type { Collections } from './collections.ts';
import { schemaVersion } from './migrations.ts';

interface SecretDocument {
  readonly _id: 'secret';
  readonly secret: string;
}

/**
 * Processes and the database. A report calls `onTooNew` in place of writing when a newer program has
 * upgraded the database.
 */
export function createProcesses(
  db: Db,
  { processes }: Pick<Collections, 'processes'>,
  onTooNew: (error: Error) => Promise<void>,
): ProcessStore {
  return {
    async report({ processId, ...report }) {
      try {
        await schemaVersion(db);
      } catch (error) {
        if (error instanceof DomainError) await onTooNew(error);
        throw error;
      }
      await processes.replaceOne({ _id: processId }, report, { upsert: true });
    },

    async remove(processId) {
      return (await processes.deleteOne({ _id: processId })).deletedCount > 0;
    },

    async list(since) {
      const found = await processes
        .find({ reportedAt: { $gte: since } })
        .sort({ _id: 1 })
        .toArray();
      return found.map(({ _id, ...report }) => ({ processId: _id, ...report }));
    },

    async database() {
      const { version } = await db.command({ buildInfo: 1 });
      return { kind: 'mongodb', version: String(version) };
    },

    async secret(fresh) {
      const meta = db.collection<SecretDocument>('meta');
      const set = { $setOnInsert: { secret: fresh } };
      await meta.updateOne({ _id: 'secret' }, set, { upsert: true });
      // Of several at once, only a read says which one was first.
      return (await meta.findOne({ _id: 'secret' }))?.secret ?? fresh;
    },
  };
}
