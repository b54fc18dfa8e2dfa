import type { Db } from 'mongodb';
import { withDeadlines } from '../../domain/deadline.ts';
import { type SchedulerBackend, taskIdentity } from '../agenda/task-documents.ts';
import { createMongoTaskDocuments, type TaskDocument } from './task-documents.ts';

/** The collection of tasks. */
export const TASK_COLLECTION = 'agenda_jobs';

/** A process whose last heartbeat is older than this runs no tasks any more. */
const PRESENT_MS = 15_000;

interface ProcessDocument {
  readonly _id: string;
  readonly at: Date;
}

/** Deadline of one call: the driver can wait for ever for a connection that was just closed. */
const ANSWER_MS = 75_000;

const noAnswer = (): Error => new Error('the database did not answer in time');

/** Tasks in MongoDB. `connect` makes the indexes; the caller closes `db`. */
export function createMongoBackend(db: Db): SchedulerBackend {
  const documents = db.collection<TaskDocument>(TASK_COLLECTION);
  const processes = db.collection<ProcessDocument>('agenda_processes');
  return {
    name: 'MongoDB',
    async connect() {
      await processes.createIndex({ at: 1 }, { name: 'expiry', expireAfterSeconds: 3_600 });
      await documents.createIndexes([
        // A poll reads the first entries of each: none that is due later, and locked ones only
        // where it looks for locks. Agenda's own query joins the two with `$or` under one order,
        // for which MongoDB reads every document of the name.
        { key: { name: 1, nextRunAt: 1, priority: -1, lockedAt: 1 }, name: 'due' },
        {
          key: { name: 1, lockedAt: 1 },
          name: 'locked',
          partialFilterExpression: { lockedAt: { $type: 'date' } },
        },
        { key: { task: 1 }, name: 'task', unique: true, sparse: true },
      ]);
    },
    tasks: withDeadlines(createMongoTaskDocuments(documents), ANSWER_MS, noAnswer),
    presence: {
      async heartbeat(processName, now) {
        const since = new Date(now.getTime() - PRESENT_MS);
        await processes.updateOne({ _id: processName }, { $set: { at: now } }, { upsert: true });
        return processes.countDocuments({ _id: { $ne: processName }, at: { $gt: since } });
      },
      leave: async (processName) => void (await processes.deleteOne({ _id: processName })),
      async unlock(name, keys) {
        const task = { $in: keys.map((key) => taskIdentity(name, key)) };
        await documents.updateMany(
          { task, lockedAt: { $ne: null } },
          { $unset: { lockedAt: true, lastModifiedBy: true } },
        );
      },
    },
  };
}
