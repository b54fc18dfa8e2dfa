import type { Db } from 'mongodb';
import { isInserted } from './mongo-errors.ts';

/** What the processes have agreed on. */
export interface AgreedTime {
  /** How far the service time is ahead of the server's clock, in milliseconds. */
  readonly aheadMs: number;
  /** What that clock showed when a process last found it so, and which process. */
  readonly checkedAt: Date;
  readonly checkedBy: string;
}

/** The server's clock, and what is agreed on there. */
export interface TimeServer {
  clock(): Promise<Date>;
  agreed(): Promise<AgreedTime | undefined>;
  /** Writes what is agreed on, unless another process has written since `known` was read. */
  agree(agreed: AgreedTime, known: AgreedTime | undefined): Promise<boolean>;
}

/** Times that differ by less are the same: a process waits until it is no longer ahead. */
export const MAX_DIFFERENCE_MS = 1_000;
/** What a process found longer ago than this, by the server's clock, proves nothing about that clock now. */
const FRESH_MS = 45_000;

/** What a process knows when it checks the clock. */
interface Found {
  /** How far its own service time is ahead of the server's clock; absent at its start. */
  readonly mineMs: number | undefined;
  readonly serverMs: number;
  readonly processId: string;
}

/**
 * How far ahead of the server's clock the service time is from now on. A process that runs trusts its
 * own monotonic time, so a server's clock that was set changes nothing. It follows others only
 * forward, and only when they have checked lately: then it was the process that stood still.
 */
export function agreeOn(
  known: AgreedTime | undefined,
  { mineMs, serverMs, processId }: Found,
): number {
  if (known === undefined) return Math.round(mineMs ?? 0);
  const sinceMs = serverMs - known.checkedAt.getTime();
  const isFresh = sinceMs >= -MAX_DIFFERENCE_MS && sinceMs <= FRESH_MS;
  if (mineMs === undefined) {
    // Set back: the service time does not begin again before where it was.
    if (sinceMs < -MAX_DIFFERENCE_MS) return Math.round(known.aheadMs - sinceMs);
    // Nobody goes by a time that is behind any more.
    return isFresh ? known.aheadMs : Math.max(known.aheadMs, 0);
  }
  if (Math.abs(mineMs - known.aheadMs) <= MAX_DIFFERENCE_MS) return known.aheadMs;
  const isOfOthers = isFresh && known.checkedBy !== processId;
  return isOfOthers && known.aheadMs > mineMs ? known.aheadMs : Math.round(mineMs);
}

const _id = 'service_time';

interface TimeDocument extends AgreedTime {
  readonly _id: typeof _id;
}

/** Moves the service time ahead to that of records which are copied here from another database. */
export async function moveAhead(db: Db, aheadMs: number): Promise<void> {
  await db.collection<TimeDocument>('meta').updateOne({ _id }, { $max: { aheadMs } });
}

/** The server behind a database. */
export function createTimeServer(db: Db): TimeServer {
  const meta = db.collection<TimeDocument>('meta');
  return {
    clock: async () => (await db.command({ hello: 1 })).localTime as Date,
    agreed: async () => (await meta.findOne({ _id })) ?? undefined,
    async agree(agreed, known) {
      if (known !== undefined) {
        const { checkedAt, checkedBy, aheadMs } = known;
        const unchanged = { _id, checkedAt, checkedBy, aheadMs } as const;
        return (await meta.updateOne(unchanged, { $set: agreed })).matchedCount === 1;
      }
      return isInserted(meta.insertOne({ _id, ...agreed }));
    },
  };
}
