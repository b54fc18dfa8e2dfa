import { acquireWithin } from '../fairness/acquire-within.ts';
import { type Claimant, createFairPool, type FairPool, type Grant } from '../fairness/fair-pool.ts';

/** The memory that calls take while their bodies are read and their replies are sent. */
export interface RoomPools {
  /** Of calls whose account is known. */
  readonly memory: FairPool;
  /** Of calls whose token has yet to be read, by the address they come from. */
  readonly strangers: FairPool;
  /** Most that one claim takes, whatever it asks for: less than there is, so that what calls hold already leaves room for it. */
  readonly mostBytes: number;
  /** How long a call waits for room, in milliseconds. */
  readonly waitMs: number;
}

/** A part of the memory of a call. */
export type RoomGrant = Pick<Grant, 'amount' | 'shrink' | 'release'>;

/** The memory of one call. */
export interface Room {
  /** Bytes held now. */
  readonly held: number;
  /** Waits for room. Rejects with `unavailable` or `exhausted` when there is none in time. */
  take(bytes: number): Promise<RoomGrant>;
  /** Gives back what was taken so far. */
  giveBack(): void;
  /** Gives everything back, also what is granted from now on. */
  release(): void;
}

/** How long a call waits for room, or for a slot, before it is told to come back. */
export const ROOM_WAIT_MS = 10_000;

const MIB = 1024 * 1024;

/** The pools over the budget of calls, of `bytes`. What strangers may take beside it is small and shared by address. */
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
  };
}

/** Pools that never lack room, for tables without accounts. */
export function createBoundlessPools(): RoomPools {
  const boundless = (): FairPool =>
    createFairPool({ name: 'memory', capacity: Number.MAX_SAFE_INTEGER });
  return {
    memory: boundless(),
    strangers: boundless(),
    mostBytes: Number.MAX_SAFE_INTEGER,
    waitMs: ROOM_WAIT_MS,
  };
}

/** Whose memory a call takes. */
export interface RoomOwner {
  /** Undefined while it is not known who calls. */
  readonly accountId: string | undefined;
  readonly remote: string;
}

/** Makes the room of a call. `authenticateCall` is asked at each claim; `onTaken` is told of the first one. */
export function createRoom(
  pools: RoomPools,
  authenticateCall: () => RoomOwner,
  onTaken: (room: Room) => void,
): Room {
  const grants = new Set<Grant>();
  let isTold = false;
  let isReleased = false;
  const room: Room = {
    get held() {
      let bytes = 0;
      for (const { amount } of grants) bytes += amount;
      return bytes;
    },
    async take(bytes) {
      const { accountId, remote } = authenticateCall();
      const pool = accountId === undefined ? pools.strangers : pools.memory;
      const claimant: Claimant = { accountId: accountId ?? remote };
      const wanted = Math.min(bytes, pools.mostBytes);
      const grant = await acquireWithin(pool, claimant, wanted, pools.waitMs);
      // The call may have ended while it waited.
      if (isReleased) {
        grant.release();
        return grant;
      }
      grants.add(grant);
      if (!isTold) onTaken(room);
      isTold = true;
      return {
        get amount() {
          return grant.amount;
        },
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
