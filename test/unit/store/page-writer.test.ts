import { expect, test } from 'vitest';
import { createPageWriter, ONE_WRITE_BYTES } from '../../../src/store/sqlite/page-writer.ts';
import { type PagePiece, PIECE_BYTES } from '../../../src/store/sqlite/pages.ts';
import { makeRecord } from '../../contract/store/outcomes.ts';

/** A database whose calls take 7 ms of the test's time, and a writer for it. */
function startWriter() {
  const events: string[] = [];
  let nowMs = 0;
  const writer = createPageWriter(
    {
      async call(operation, args) {
        if (operation !== 'pages.writePieces') return undefined;
        const [pieces] = args as [readonly PagePiece[]];
        nowMs += 7;
        events.push(`write ${pieces.reduce((sum, { body }) => sum + body.byteLength, 0)}`);
        return pieces.map(({ pageId }) => pageId ?? 1);
      },
    },
    {
      now: () => nowMs,
      async wait(ms) {
        events.push(`wait ${ms}`);
      },
    },
  );
  return { events, writer };
}

const record = (bytes: number) =>
  makeRecord({ rid: 'a', url: 'https://example.com' }, { body: new Uint8Array(bytes) });

test('a large page is written in pieces, with pauses twice as long as each took', async () => {
  const { events, writer } = startWriter();
  await writer.record(record(ONE_WRITE_BYTES + 1), async () => events.push('record'));
  const piece = [`write ${PIECE_BYTES}`, 'wait 14'];
  expect(events).toEqual([...piece, ...piece, ...piece, ...piece, 'write 1', 'wait 14', 'record']);
});

test('pages that fit into one write are written with their records', async () => {
  const { events, writer } = startWriter();
  await writer.record(record(ONE_WRITE_BYTES), async () => events.push('record'));
  expect(events).toEqual(['record']);
});
