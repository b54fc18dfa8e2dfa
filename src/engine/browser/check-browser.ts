import type { Logger } from '../../domain/logger.ts';
import { createChromiumStarter } from './chromium-starter.ts';
import { evaluateOnEmptyPage } from './empty-page.ts';
import { findMissingFonts, type Script } from './missing-fonts.ts';
import type { SandboxMode } from './sandbox.ts';

const CLOSE_MS = 2_000;
const OPEN_WEBGL = `document.createElement('canvas').getContext('webgl') !== null`;

/** A browser that starts. */
export interface CheckedBrowser {
  /** Its name and version. */
  readonly product: string;
  /** What its pictures show as boxes. */
  readonly missingFonts: readonly Script[];
  /** Whether pages get WebGL. */
  readonly hasWebgl: boolean;
}

/**
 * Starts a second Chromium, which does not crawl, and ends it. Rejects as the starter does.
 */
export async function checkBrowser(deps: {
  readonly chromiumPath: string;
  readonly sandbox: SandboxMode;
  readonly webgl: boolean;
  readonly logger: Logger;
}): Promise<CheckedBrowser> {
  const chromium = await createChromiumStarter(deps).start();
  try {
    const { product } = await chromium.cdp.send('Browser.getVersion');
    const missingFonts = await findMissingFonts(chromium.cdp);
    const hasWebgl = (await evaluateOnEmptyPage(chromium.cdp, OPEN_WEBGL)) === true;
    return { product, missingFonts, hasWebgl };
  } finally {
    await chromium.close(CLOSE_MS);
  }
}
