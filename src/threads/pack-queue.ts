import { constants } from 'node:zlib';
import { Gzip } from 'minizlib';
import { createTurnQueue } from '../fairness/turn-queue.ts';
import type { Packed, ToPack } from './compress.ts';

/** Large bodies that are compressed, those of several accounts in turn, a slice of each at a time. */
export interface PackQueue {
  add(body: ToPack): void;
  /**
   * Compresses the next slice of the account whose turn it is. Returns the body that it was the last
   * slice of; undefined if there is none such, or nothing to do.
   */
  step(): Packed | undefined;
  /** Whether there is something to do. */
  readonly isBusy: boolean;
}

/** Takes some milliseconds if it does not compress. */
const SLICE_BYTES = 64 * 1_024;
/** Each account with a body under way has a compressor, of a quarter of a megabyte; others wait. */
const MAX_ACTIVE = 16;

interface Packing {
  readonly accountId: string;
  readonly work: ToPack;
  readonly gzip: Gzip;
  readonly pieces: Buffer[];
  /** Bytes of the body that are compressed. */
  done: number;
}

/** Makes an empty queue. A small body waits for no large one of another account. */
export function createPackQueue(): PackQueue {
  const waiting = createTurnQueue<ToPack>();
  /** At most one for each account, in the order of turns. */
  const active: Packing[] = [];

  function admit(): void {
    if (waiting.size === 0 || active.length === MAX_ACTIVE) return;
    for (const { accountId, item } of waiting.turns()) {
      if (active.length === MAX_ACTIVE) return;
      if (active.some((each) => each.accountId === accountId)) continue;
      waiting.endTurn(accountId);
      const gzip = new Gzip({ level: item.level });
      active.push({ accountId, work: item, gzip, pieces: [], done: 0 });
    }
  }

  function writeSlice(packing: Packing): void {
    const { work, gzip, pieces, done } = packing;
    const { buffer, byteOffset, byteLength } = work.body;
    const length = Math.min(SLICE_BYTES, byteLength - done);
    gzip.write(Buffer.from(buffer, byteOffset + done, length));
    packing.done += length;
    if (packing.done === byteLength) gzip.flush(constants.Z_FINISH);
    const piece = gzip.read();
    if (piece !== null) pieces.push(piece);
  }

  return {
    get isBusy() {
      return active.length > 0 || waiting.size > 0;
    },
    add(body) {
      waiting.add(body.claimant, body);
    },
    step() {
      admit();
      const packing = active.shift();
      if (packing === undefined) return undefined;
      writeSlice(packing);
      const { work, pieces, done } = packing;
      if (done < work.body.byteLength) {
        active.push(packing);
        return undefined;
      }
      // Its memory would otherwise wait for a full collection.
      packing.gzip.close();
      // Of the exact length: other memory would be copied whole at each change of threads.
      return { id: work.id, body: work.body, packed: new Uint8Array(Buffer.concat(pieces)) };
    },
  };
}
