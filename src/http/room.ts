import { acquireWithin } from '../fairness/acquire-within.ts';
import { type Claimant, createFairPool, type FairPool, type Grant } from '../fairness/fair-pool.ts';
import { createReadTurns, type ReadTurns } from '../fairness/read-turns.ts';

/** The memory that calls take while their bodies are read and their replies are sent. */
export interface RoomPools {
  /** For calls whose account is known. */
  readonly memory: FairPool;
  /** For calls whose token has not been read yet, shared by address. */
  readonly strangers: FairPool;
  /**
   * Most bytes of one claim, whatever it asks for. It is less than the pool, so a claim succeeds
   * while other calls hold memory.
   */
  readonly mostBytes: number;
  /** How long a call waits for memory, in milliseconds. */
  readonly waitMs: number;
  /** In which calls read their messages. */
  readonly readTurns: ReadTurns;
}

/** A part of the memory of a call. */
export type RoomGrant = Pick<Grant, 'shrink' | 'release'>;

/** The memory of one call. */
export interface Room {
  /** Bytes held now. */
  held(): number;
  /** Waits for memory. Rejects with `unavailable` or `exhausted` when none becomes free in time. */
  take(bytes: number): Promise<RoomGrant>;
  /** Resolves when a message of this length may be read; see {@link ReadTurns}. */
  readTurn(bytes: number): Promise<void>;
  /** Releases what was taken so far. */
  giveBack(): void;
  /** Releases everything, including what is granted later. */
  release(): void;
}

/** How long a call waits for memory, or for a slot, before it is refused. */
export const ROOM_WAIT_MS = 10_000;

const MIB = 1024 * 1024;

/**
 * Makes the pools over the calls' budget of `bytes`. The pool of unknown callers is small,
 * separate, and shared by address.
 */
export function createRoomPools(memory: FairPool, bytes: number): RoomPools {
  return {
    memory,
    strangers: createFairPool({
      name: 'memory of calls without a token',
      capacity: 8 * MIB,
      reserve: 2 * MIB,
      maxWaiting: 100,
    }),
    mostBytes: Math.floor(bytes / 2),
    waitMs: ROOM_WAIT_MS,
    readTurns: createReadTurns(),
  };
}

/** Pools without limits, for tables without accounts. */
export function createUnlimitedPools(): RoomPools {
  const unlimitedPool = (): FairPool =>
    createFairPool({ name: 'memory', capacity: Number.MAX_SAFE_INTEGER });
  return {
    memory: unlimitedPool(),
    strangers: unlimitedPool(),
    mostBytes: Number.MAX_SAFE_INTEGER,
    waitMs: ROOM_WAIT_MS,
    readTurns: createReadTurns(),
  };
}

/** The owner of a call's memory. */
export interface RoomOwner {
  /** Undefined while the caller is not known. */
  readonly accountId: string | undefined;
  readonly remote: string;
}

/** Makes the room of a call. `findOwner` is called at each claim, `onTaken` at the first one. */
export function createRoom(
  pools: RoomPools,
  findOwner: () => RoomOwner,
  onTaken: (room: Room) => void,
): Room {
  const grants = new Set<Grant>();
  let isAnnounced = false;
  let isReleased = false;
  const claimantOf = ({ accountId, remote }: RoomOwner): Claimant => ({
    accountId: accountId ?? remote,
  });
  const room: Room = {
    readTurn: (bytes) => pools.readTurns.take(claimantOf(findOwner()), bytes),
    held() {
      let bytes = 0;
      for (const { amount } of grants) bytes += amount;
      return bytes;
    },
    async take(bytes) {
      const owner = findOwner();
      const pool = owner.accountId === undefined ? pools.strangers : pools.memory;
      const wanted = Math.min(bytes, pools.mostBytes);
      const grant = await acquireWithin(pool, claimantOf(owner), wanted, pools.waitMs);
      // The call may have ended while it waited.
      if (isReleased) {
        grant.release();
        return grant;
      }
      grants.add(grant);
      if (!isAnnounced) onTaken(room);
      isAnnounced = true;
      return {
        shrink: (amount) => grant.shrink(amount),
        release() {
          grant.release();
          grants.delete(grant);
        },
      };
    },
    giveBack() {
      for (const grant of grants) grant.release();
      grants.clear();
    },
    release() {
      isReleased = true;
      room.giveBack();
    },
  };
  return room;
}
