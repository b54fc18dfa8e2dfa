import { CdpError } from './cdp-connection.ts';
import type { BrowserPage } from './running-browser.ts';

/**
 * Runs a client's script among those of the page, which is what it is for, and awaits its promise. Returns
 * whether it ended well within `ms`; it has when the page navigates because of it.
 */
export async function runSnippet(page: BrowserPage, script: string, ms: number): Promise<boolean> {
  const code = { expression: script, awaitPromise: true, allowUnsafeEvalBlockedByCSP: true };
  try {
    const { exceptionDetails } = await page.send('Runtime.evaluate', { ...code, timeout: ms }, ms);
    return exceptionDetails === undefined;
  } catch (error) {
    if (!(error instanceof CdpError) || error.kind === 'closed') throw error;
    return error.kind === 'refused' && /navigat|destroyed|Inspected target/i.test(error.message);
  }
}
