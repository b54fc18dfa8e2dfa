import { expect, test } from 'vitest';
import { createPageWriter, ONE_WRITE_BYTES } from '../../../src/store/sqlite/page-writer.ts';
import { type PagePiece, PIECE_BYTES } from '../../../src/store/sqlite/pages.ts';
import { makeRecord } from '../../contract/store/outcomes.ts';

/**
 * A database whose pieces take `pieceMs` of the test's time, and a writer for it. `others` are the pieces
 * during which another call comes, counted from 0.
 */
function startWriter({ pieceMs = 7, others = [] }: { pieceMs?: number; others?: number[] } = {}) {
  const events: string[] = [];
  let nowMs = 0;
  let begun = 0;
  let pieces = 0;
  const writer = createPageWriter(
    {
      get begun() {
        return begun;
      },
      async call(operation, args) {
        begun += 1;
        if (operation !== 'pages.writePiece') return undefined;
        const [{ body, piece }] = args as [PagePiece];
        nowMs += pieceMs;
        if (others.includes(pieces)) begun += 1;
        pieces += 1;
        events.push(`piece ${piece}: ${body.byteLength}`);
        return 1;
      },
    },
    {
      now: () => nowMs,
      async wait(ms) {
        nowMs += ms;
        events.push(`wait ${ms}`);
      },
    },
  );
  return { events, writer };
}

const record = (bytes: number) =>
  makeRecord({ rid: 'a', url: 'https://example.com' }, { body: new Uint8Array(bytes) });

test('a large page is written in long pieces one after the other while nobody else calls', async () => {
  const { events, writer } = startWriter();
  await writer.record(record(2 * ONE_WRITE_BYTES + 1), async () => events.push('record'));
  expect(events).toEqual([
    `piece 0: ${ONE_WRITE_BYTES}`,
    `piece 1: ${ONE_WRITE_BYTES}`,
    'piece 2: 1',
    'record',
  ]);
});

test('once another call had to wait, pieces are short, with pauses twice as long as each', async () => {
  const { events, writer } = startWriter({ others: [0] });
  await writer.record(record(ONE_WRITE_BYTES + 2 * PIECE_BYTES), async () => events.push('record'));
  expect(events).toEqual([
    `piece 0: ${ONE_WRITE_BYTES}`,
    'wait 14',
    `piece 1: ${PIECE_BYTES}`,
    'wait 14',
    `piece 2: ${PIECE_BYTES}`,
    'wait 14',
    'record',
  ]);
});

test('200 ms after the last call that had to wait, pieces are long again', async () => {
  const { events, writer } = startWriter({ pieceMs: 80, others: [0] });
  const bytes = 2 * ONE_WRITE_BYTES + 2 * PIECE_BYTES;
  await writer.record(record(bytes), async () => events.push('record'));
  expect(events.filter((event) => event.startsWith('piece'))).toEqual([
    `piece 0: ${ONE_WRITE_BYTES}`,
    `piece 1: ${PIECE_BYTES}`,
    `piece 2: ${PIECE_BYTES}`,
    `piece 3: ${ONE_WRITE_BYTES}`,
  ]);
});

test('a process that stood still during a piece pauses for 50 ms, not for twice that time', async () => {
  const { events, writer } = startWriter({ pieceMs: 5_000, others: [0] });
  await writer.record(record(ONE_WRITE_BYTES + 1), async () => events.push('record'));
  expect(events).toContain('wait 50');
  expect(events.filter((event) => event.startsWith('wait'))).toEqual(['wait 50']);
});

test('pages that fit into one write are written with their records', async () => {
  const { events, writer } = startWriter();
  await writer.record(record(ONE_WRITE_BYTES), async () => events.push('record'));
  expect(events).toEqual(['record']);
});
