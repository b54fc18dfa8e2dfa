import type { BrowserPage } from './running-browser.ts';

const PIECE_BYTES = 256 * 1024;

/**
 * Reads a stream of the browser to its end, and leaves it open. Undefined when it is longer than
 * `maxBytes`; `timeoutMs` is for each piece. Rejects with a `CdpError`.
 */
export async function readStream(
  page: BrowserPage,
  handle: string,
  maxBytes: number,
  timeoutMs: number,
): Promise<Uint8Array | undefined> {
  const pieces: Buffer[] = [];
  let length = 0;
  for (;;) {
    const piece = await page.send('IO.read', { handle, size: PIECE_BYTES }, timeoutMs);
    const bytes = Buffer.from(piece.data, piece.base64Encoded === true ? 'base64' : 'utf8');
    length += bytes.length;
    pieces.push(bytes);
    if (length > maxBytes) return undefined;
    if (piece.eof) return Buffer.concat(pieces);
  }
}
