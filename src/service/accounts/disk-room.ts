import { statfs } from 'node:fs/promises';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../domain/logger.ts';

/** What is left on the disk of the embedded database. */
export interface DiskRoom {
  /** The refusal while less is left than must stay free; undefined otherwise. */
  refusal(): Promise<DomainError | undefined>;
  /** What is left while that is less than must stay free; undefined otherwise. */
  shortage(): Promise<DiskShortage | undefined>;
}

/** Too little room on a disk. */
export interface DiskShortage {
  readonly freeBytes: number;
  readonly minFreeBytes: number;
}

/** How old a reading may be, so how much may be written beyond the limit. */
const FRESH_MS = 1_000;
const RETRY_MS = 30_000;

/** There is always room: the database is elsewhere, or the operator set no limit. */
export const unlimitedDisk: DiskRoom = {
  refusal: () => Promise.resolve(undefined),
  shortage: () => Promise.resolve(undefined),
};

/** Makes the look at the disk of a folder, of which `minFreeBytes` must stay free. */
export function createDiskRoom(
  folder: string,
  minFreeBytes: number,
  logger: Pick<Logger, 'info' | 'warn'>,
): DiskRoom {
  if (minFreeBytes === 0) return unlimitedDisk;
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<number> = Promise.resolve(0);
  let isLow = false;

  function freeBytes(): Promise<number> {
    if (performance.now() - readAt < FRESH_MS) return reading;
    readAt = performance.now();
    reading = statfs(folder).then(
      ({ bavail, bsize }) => bavail * bsize,
      // Unknown room is no reason to refuse: the database refuses what it cannot write.
      () => Number.POSITIVE_INFINITY,
    );
    return reading;
  }

  async function shortage(): Promise<DiskShortage | undefined> {
    const free = await freeBytes();
    const wasLow = isLow;
    isLow = free < minFreeBytes;
    if (isLow !== wasLow) {
      const fields = { folder, freeBytes: free, minFreeBytes };
      if (isLow) logger.warn(fields, 'the disk has less than MIN_FREE_BYTES; pushes are refused');
      else logger.info(fields, 'the disk has room again; pushes are accepted');
    }
    return isLow ? { freeBytes: free, minFreeBytes } : undefined;
  }

  return {
    shortage,
    async refusal() {
      if ((await shortage()) === undefined) return undefined;
      const message =
        'The disk of the service is almost full; try again when its operator has freed some.';
      return new DomainError('unavailable', 'disk_almost_full', message, {
        retryAfterMs: RETRY_MS,
      });
    },
  };
}
