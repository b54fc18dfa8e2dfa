import { MongoBackend } from '@agendajs/mongo-backend';
import type { Db } from 'mongodb';
import { createMongoTaskDocuments, type TaskDocument } from './mongo-task-documents.ts';
import type { ClockBackend } from './task-documents.ts';

/** Where Agenda's documents are. */
export const agendaCollection = 'agenda_jobs';

/** Agenda on MongoDB, through its official backend. The indexes are made when it connects; `db` stays the caller's to close. */
export function createMongoBackend(db: Db): ClockBackend {
  const { name, repository } = new MongoBackend({
    mongo: db,
    collection: agendaCollection,
    ensureIndex: false,
  });
  const documents = db.collection<TaskDocument>(agendaCollection);
  return {
    agenda: {
      name,
      repository,
      ownsConnection: false,
      async connect() {
        await repository.connect();
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
  };
}
