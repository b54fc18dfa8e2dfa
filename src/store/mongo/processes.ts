import type { Db } from 'mongodb';
import type { ProcessStore } from '../process-store.ts';
import type { Collections } from './collections.ts';

interface SecretDocument {
  readonly _id: 'secret';
  readonly secret: string;
}

/** Processes and the database. */
export function createProcesses(
  db: Db,
  { processes }: Pick<Collections, 'processes'>,
): ProcessStore {
  return {
    async report({ processId, ...report }) {
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
