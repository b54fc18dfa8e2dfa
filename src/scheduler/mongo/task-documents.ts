import {
  type Collection,
  type Filter,
  MongoServerError,
  ObjectId,
  type UpdateFilter,
} from 'mongodb';
import {
  type LockedTask,
  type TaskDocuments,
  type TaskLock,
  taskIdentity,
} from '../agenda/task-documents.ts';

/**
 * One of Agenda's documents. `nextRunAt` is absent while no run waits, because `$min` orders null
 * before every date.
 */
export interface TaskDocument {
  readonly _id: ObjectId;
  readonly task?: string;
  readonly name: string;
  readonly type: 'normal' | 'single';
  readonly priority: number;
  readonly data: { readonly key?: string };
  readonly nextRunAt?: Date;
  readonly lockedAt?: Date | null;
  readonly lastModifiedBy?: string;
  readonly repeatInterval?: number;
  readonly lastRunAt?: Date;
  readonly lastFinishedAt?: Date;
}

/** Two upserts found no document and one inserted it, or each waited for a lock of the other. */
const CONFLICTS: ReadonlySet<unknown> = new Set([11_000, 112]);
const MAX_TRIES = 5;

/** The scheduler's fenced writes on Agenda's collection. Each changes one document atomically. */
export function createMongoTaskDocuments(documents: Collection<TaskDocument>): TaskDocuments {
  async function upsert(task: string, update: UpdateFilter<TaskDocument>): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        await documents.updateOne({ task }, update, { upsert: true });
        return;
      } catch (error) {
        const isConflict = error instanceof MongoServerError && CONFLICTS.has(error.code);
        if (!isConflict || tries === MAX_TRIES) throw error;
      }
    }
  }

  async function lock(
    filter: Filter<TaskDocument>,
    sort: Record<string, 1 | -1>,
    { token, now }: { readonly token: string; readonly now: Date },
  ): Promise<LockedTask | undefined> {
    const repeats = { $gt: ['$repeatInterval', 0] };
    const next = { $cond: [repeats, { $add: [now, '$repeatInterval'] }, '$$REMOVE'] };
    const $set = { lockedAt: now, lastModifiedBy: token, lastRunAt: now, nextRunAt: next };
    const options = { sort, projection: { type: 1, data: 1 } } as const;
    const document = await documents.findOneAndUpdate(filter, [{ $set }], options);
    if (document === null) return undefined;
    const { _id, type, data } = document;
    return { id: _id.toHexString(), token, key: data.key ?? '', repeats: type === 'single' };
  }

  const extensions = createExtensions(documents);

  return {
    async wake(name, key, at) {
      await upsert(taskIdentity(name, key), {
        $min: { nextRunAt: at },
        $setOnInsert: { name, type: 'normal', priority: 0, data: { key } },
      });
    },
    async repeat(name, intervalMs, now) {
      const task = taskIdentity(name);
      await upsert(task, {
        $set: { repeatInterval: intervalMs },
        $setOnInsert: { name, type: 'single', priority: 0, data: {}, nextRunAt: now },
      });
      const nextRunAt = new Date(now.getTime() + intervalMs);
      await documents.updateOne({ task }, { $min: { nextRunAt } });
    },
    namesDue: (now, lockedBefore) =>
      documents.distinct('name', {
        $or: [
          { lockedAt: null, nextRunAt: { $lte: now } },
          { lockedAt: { $lte: lockedBefore, $type: 'date' } },
        ],
      }),
    claimDue: (name, token, now, dueBy = now) =>
      lock(
        { name, lockedAt: null, nextRunAt: { $lte: dueBy } },
        { nextRunAt: 1, priority: -1 },
        { token, now },
      ),
    claimLapsed: (name, token, lockedBefore, now) =>
      lock(
        { name, lockedAt: { $lte: lockedBefore, $type: 'date' } },
        { lockedAt: 1 },
        { token, now },
      ),
    extend: (lock, now) => extensions.add(lock, now),
    async finish(lock, again) {
      if (again === undefined && !lock.repeats) {
        const idle = { ...held(lock), nextRunAt: { $exists: false } };
        const { deletedCount } = await documents.deleteOne(idle);
        if (deletedCount === 1) return false;
      }
      const { matchedCount } = await documents.updateOne(held(lock), {
        $set: { lastFinishedAt: new Date() },
        $unset: { lockedAt: true },
        ...(again === undefined ? {} : { $min: { nextRunAt: again } }),
      });
      return matchedCount === 1;
    },
  };
}

/** Renews the locks that are to be renewed in one tick by one update. */
function createExtensions(documents: Collection<TaskDocument>) {
  let batch:
    | { readonly locks: TaskLock[]; readonly kept: Promise<ReadonlySet<string>> }
    | undefined;

  async function extendAll(locks: readonly TaskLock[], now: Date): Promise<ReadonlySet<string>> {
    await Promise.resolve();
    batch = undefined;
    const all = {
      _id: { $in: locks.map(({ id }) => new ObjectId(id)) },
      lastModifiedBy: { $in: locks.map(({ token }) => token) },
      lockedAt: { $ne: null },
    };
    const { matchedCount } = await documents.updateMany(all, { $set: { lockedAt: now } });
    if (matchedCount === locks.length) return new Set(locks.map(({ token }) => token));
    const left = await documents.find(all, { projection: { lastModifiedBy: 1 } }).toArray();
    return new Set(left.flatMap(({ lastModifiedBy }) => lastModifiedBy ?? []));
  }

  return {
    async add(lock: TaskLock, now: Date): Promise<boolean> {
      if (batch === undefined) {
        const locks: TaskLock[] = [];
        batch = { locks, kept: extendAll(locks, now) };
      }
      batch.locks.push(lock);
      return (await batch.kept).has(lock.token);
    },
  };
}

function held(lock: TaskLock): Filter<TaskDocument> {
  return { _id: new ObjectId(lock.id), lastModifiedBy: lock.token, lockedAt: { $ne: null } };
}
