import { setTimeout as delay } from 'node:timers/promises';
import type { CrawlRecord } from '../../domain/result.ts';
import type { JobOutcome } from '../store.ts';
import { type PagePiece, PIECE_BYTES, type PlacedRecord, type WrittenPage } from './pages.ts';
import type { SqliteDatabase } from './thread/database.ts';

/** Writes what holds many bytes of pages so that other calls are answered in between. */
export interface PageWriter {
  /**
   * Writes ends of jobs. If their pages are larger than {@link ONE_WRITE_BYTES} together, they are
   * written first, in pieces, and `write` gets records that name them.
   */
  outcomes<Value>(
    outcomes: readonly JobOutcome[],
    write: (placed: readonly JobOutcome[]) => Promise<Value>,
  ): Promise<Value>;
  /** The same for one record. */
  record<Value>(
    record: CrawlRecord,
    write: (placed: CrawlRecord) => Promise<Value>,
  ): Promise<Value>;
}

/** Pages that are written at once, with their records: what a turn of a crawler's run writes at most. */
export const ONE_WRITE_BYTES = 512 * 1024;
/** Pause after a piece, in times of what it took, so that pieces have a third of the database's time. */
const PAUSE = 2;
const NO_BYTES = new Uint8Array(0);

/** How a writer measures time and waits, in milliseconds. */
export interface PageWriterClock {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/** Makes the writer. All pages of a store take turns, a piece each. `now` is in milliseconds. */
export function createPageWriter(
  database: Pick<SqliteDatabase, 'call'>,
  {
    now = () => performance.now(),
    wait = (ms: number): Promise<unknown> => delay(ms),
  }: Partial<PageWriterClock> = {},
): PageWriter {
  let last: Promise<unknown> = Promise.resolve();

  function writePieces(pieces: readonly PagePiece[]): Promise<number[]> {
    const memory = pieces.map(({ body }) => body.buffer);
    let startedAt = 0;
    const written = last.then(() => {
      startedAt = now();
      return database.call('pages.writePieces', [pieces], memory);
    });
    const pause = (): Promise<unknown> => wait(PAUSE * (now() - startedAt));
    last = written.then(pause, pause);
    return written as Promise<number[]>;
  }

  /** Writes pages; notes in `ids` those that were begun, by their place in the list. */
  async function writePages(bodies: readonly Uint8Array[], ids: number[]): Promise<void> {
    for (const group of groupPieces(bodies)) {
      const pieces = group.map(({ index, piece, from }) => ({
        pageId: ids[index],
        piece,
        // A copy: its memory moves to the other thread, and a view would take the whole page along.
        body: new Uint8Array(bodies[index]?.subarray(from, from + PIECE_BYTES) ?? NO_BYTES),
      }));
      for (const [at, pageId] of (await writePieces(pieces)).entries()) {
        const index = group[at]?.index;
        if (index !== undefined) ids[index] = pageId;
      }
    }
  }

  async function placing<Value>(
    records: readonly CrawlRecord[],
    write: (place: (record: CrawlRecord) => PlacedRecord) => Promise<Value>,
  ): Promise<Value> {
    if (records.reduce((sum, { body }) => sum + body.byteLength, 0) <= ONE_WRITE_BYTES) {
      return write((record) => record);
    }
    const ids: number[] = [];
    try {
      await writePages(
        records.map(({ body }) => body),
        ids,
      );
      const written = new Map<CrawlRecord, WrittenPage>(
        records.map((record, at) => [
          record,
          { pageId: ids[at] ?? 0, bytes: record.body.byteLength },
        ]),
      );
      return await write((record) => {
        const page = written.get(record);
        return page === undefined ? record : { ...record, body: NO_BYTES, written: page };
      });
    } finally {
      // Those whose record was not written. What the database cannot do now is done at its start.
      database.call('pages.dropUnfinished', [ids]).catch(() => undefined);
    }
  }

  return {
    outcomes: (outcomes, write) =>
      placing(
        outcomes.flatMap((outcome) => ('record' in outcome ? [outcome.record] : [])),
        (place) =>
          write(
            outcomes.map((outcome) =>
              'record' in outcome ? { ...outcome, record: place(outcome.record) } : outcome,
            ),
          ),
      ),
    record: (record, write) => placing([record], (place) => write(place(record))),
  };
}

/** A piece of the body at `index`, which begins at `from`. */
interface PlannedPiece {
  readonly index: number;
  readonly piece: number;
  readonly from: number;
}

/**
 * The pieces of bodies, in groups of one write each. A body's first piece is in an earlier group
 * than its others, because it fills one.
 */
function groupPieces(bodies: readonly Uint8Array[]): PlannedPiece[][] {
  const groups: PlannedPiece[][] = [];
  let room = 0;
  for (const [index, { byteLength }] of bodies.entries()) {
    for (let from = 0; from === 0 || from < byteLength; from += PIECE_BYTES) {
      const bytes = Math.min(PIECE_BYTES, byteLength - from);
      if (bytes > room || groups.length === 0) {
        groups.push([]);
        room = PIECE_BYTES;
      }
      groups.at(-1)?.push({ index, piece: from / PIECE_BYTES, from });
      room -= bytes;
    }
  }
  return groups;
}
