import { setTimeout as delay } from 'node:timers/promises';
import type { CrawlRecord } from '../../domain/result.ts';
import type { JobOutcome } from '../store.ts';
import { type PagePiece, PIECE_BYTES, type PlacedRecord, type WrittenPage } from './pages.ts';
import type { SqliteDatabase } from './thread/database.ts';
import { createYielding } from './yielding.ts';

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
const NO_BYTES = new Uint8Array(0);

/** How a writer measures time and waits, in milliseconds. */
export interface PageWriterClock {
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
}

/** Makes the writer. All pages of a store take turns, a piece each. */
export function createPageWriter(
  database: Pick<SqliteDatabase, 'call' | 'begun'>,
  {
    now = () => performance.now(),
    wait = (ms: number): Promise<unknown> => delay(ms),
  }: Partial<PageWriterClock> = {},
): PageWriter {
  let last: Promise<unknown> = Promise.resolve();
  const yielding = createYielding(database, now);

  /** Writes the next piece of a page, the bytes from `from` on. It is short while others wait. */
  async function writePiece(page: Uint8Array, from: number, at: Omit<PagePiece, 'body'>) {
    const bytes = yielding.isAsked ? PIECE_BYTES : ONE_WRITE_BYTES;
    // A copy: its memory moves to the other thread, and a view would take the whole page along.
    const body = new Uint8Array(page.subarray(from, from + bytes));
    const piece: PagePiece = { ...at, body };
    const { value, pauseMs } = await yielding.step(() =>
      database.call('pages.writePiece', [piece], [body.buffer]),
    );
    return { pageId: value as number, end: from + bytes, pauseMs };
  }

  /** Runs `write` after the pieces before it. */
  function inTurn(write: () => ReturnType<typeof writePiece>): ReturnType<typeof writePiece> {
    const written = last.then(write);
    last = written.then(
      ({ pauseMs }) => (pauseMs > 0 ? wait(pauseMs) : undefined),
      () => undefined,
    );
    return written;
  }

  /** Writes pages; notes in `ids` those that were begun, by their place in the list. */
  async function writePages(bodies: readonly Uint8Array[], ids: number[]): Promise<void> {
    for (const [index, body] of bodies.entries()) {
      let from = 0;
      for (let piece = 0; piece === 0 || from < body.byteLength; piece += 1) {
        const written = await inTurn(() => writePiece(body, from, { pageId: ids[index], piece }));
        ids[index] = written.pageId;
        from = written.end;
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
