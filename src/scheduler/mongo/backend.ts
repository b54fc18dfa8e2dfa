import { MongoBackend } from '@agendajs/mongo-backend';
import type { Db } from 'mongodb';
import type { SchedulerBackend } from '../agenda/task-documents.ts';
import { createMongoTaskDocuments, type TaskDocument } from './task-documents.ts';

/** Where Agenda's documents are. */
export const agendaCollection = 'agenda_jobs';

/** A process that has not said so for this long runs no tasks any more. */
const PRESENT_MS = 15_000;

interface ProcessDocument {
  readonly _id: string;
  readonly at: Date;
}

/** Agenda on MongoDB, through its official backend. The indexes are made when it connects; `db` stays the caller's to close. */
export function createMongoBackend(db: Db): SchedulerBackend {
  const { name, repository } = new MongoBackend({
    mongo: db,
    collection: agendaCollection,
    ensureIndex: false,
  });
  const documents = db.collection<TaskDocument>(agendaCollection);
  const processes = db.collection<ProcessDocument>('agenda_processes');
  return {
    agenda: {
      name,
      repository,
      ownsConnection: false,
      async connect() {
        await repository.connect();
        await processes.createIndex({ at: 1 }, { name: 'expiry', expireAfterSeconds: 3_600 });
        await documents.createIndexes([
          // Polling reads the near end of each: nothing that is due later, and only what is locked. Agenda's own query joins
          // the two with `$or` under one order, for which it reads every document of the name.
          { key: { name: 1, nextRunAt: 1, priority: -1, lockedAt: 1 }, name: 'due' },
          {
            key: { name: 1, lockedAt: 1 },
            name: 'locked',
            partialFilterExpression: { lockedAt: { $type: 'date' } },
          },
          { key: { task: 1 }, name: 'task', unique: true, sparse: true },
        ]);
      },
      async disconnect() {},
    },
    tasks: createMongoTaskDocuments(documents),
    presence: {
      async beat(processName, now) {
        const lately = new Date(now.getTime() - PRESENT_MS);
        await processes.updateOne({ _id: processName }, { $set: { at: now } }, { upsert: true });
        return processes.countDocuments({ _id: { $ne: processName }, at: { $gt: lately } });
      },
      leave: async (processName) => void (await processes.deleteOne({ _id: processName })),
    },
  };
}
