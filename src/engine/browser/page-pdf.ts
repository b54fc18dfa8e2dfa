import { readStream } from './read-stream.ts';
import type { BrowserPage } from './running-browser.ts';

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
  const pdf = await readStream(page, handle, maxBytes, timeoutMs);
  await page.send('IO.close', { handle });
  return pdf;
}
