import type { BrowserPage } from './running-browser.ts';

const PIECE_BYTES = 256 * 1024;

/** The page as a PDF, with backgrounds. Undefined when it is longer than `maxBytes`. Rejects with a `CdpError`. */
export async function printPage(
  page: BrowserPage,
  maxBytes: number,
  timeoutMs: number,
): Promise<Uint8Array | undefined> {
  const options = { printBackground: true, preferCSSPageSize: true } as const;
  const { stream: handle = '' } = await page.send(
    'Page.printToPDF',
    { ...options, transferMode: 'ReturnAsStream' },
    timeoutMs,
  );
  const pieces: Buffer[] = [];
  let length = 0;
  for (;;) {
    const { data, eof } = await page.send('IO.read', { handle, size: PIECE_BYTES }, timeoutMs);
    const bytes = Buffer.from(data, 'base64');
    length += bytes.length;
    pieces.push(bytes);
    if (length > maxBytes || eof) break;
  }
  await page.send('IO.close', { handle });
  return length > maxBytes ? undefined : Buffer.concat(pieces);
}
