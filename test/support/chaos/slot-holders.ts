import { setTimeout as wait } from 'node:timers/promises';
import { MongoClient } from 'mongodb';

/** Who may use the slots of a crawler, as the database has it. */
export interface SlotHolders {
  /** The process that leads it, by its pid; undefined if it has no lead. */
  readonly lead: number | undefined;
  /** Its helpers: what they may start, and what they hold, which is more while they give some back. */
  readonly helpers: readonly {
    readonly pid: number;
    readonly slots: number;
    readonly heldSlots: number;
  }[];
}

/** Watches the crawlers of a database, outside the processes that share it. */
export interface HoldersWatch extends AsyncDisposable {
  /** What was read last; undefined before the first reading. */
  of(crawler: string): SlotHolders | undefined;
}

interface WatchedDocument {
  readonly name: string;
  readonly leaseOwner: string | null;
  readonly shares?: Readonly<Record<string, WatchedShare>>;
}

interface WatchedShare {
  readonly processId: string;
  readonly slots: number;
  readonly heldSlots: number;
}

const LOOK_MS = 200;

/** Begins to watch; while the database is unavailable the last reading stays. */
export function watchHolders(uri: string): HoldersWatch {
  const client = new MongoClient(uri, { serverSelectionTimeoutMS: 1_000 });
  const crawlers = client.db().collection<WatchedDocument>('crawlers');
  const holders = new Map<string, SlotHolders>();
  let closed = false;

  async function look(): Promise<void> {
    const projection = { name: 1, leaseOwner: 1, shares: 1 } as const;
    for (const { name, leaseOwner, shares = {} } of await crawlers
      .find<WatchedDocument>({}, { projection })
      .toArray()) {
      holders.set(name, {
        lead: leaseOwner === null ? undefined : pidOf(leaseOwner),
        helpers: Object.values(shares).map(({ processId, slots, heldSlots }) => {
          return { pid: pidOf(processId), slots, heldSlots };
        }),
      });
    }
  }

  async function watching(): Promise<void> {
    while (!closed) {
      await look().catch(() => undefined);
      await wait(LOOK_MS);
    }
  }

  const done = watching();
  return {
    of: (crawler) => holders.get(crawler),
    async [Symbol.asyncDispose]() {
      closed = true;
      await done;
      await client.close();
    },
  };
}

/** A process is named by its host, its pid and a random part. */
function pidOf(processId: string): number {
  return Number(processId.split(':').at(-2));
}
