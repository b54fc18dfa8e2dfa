import type { Logger } from '../../domain/logger.ts';
import { createChromiumStarter, type SandboxMode } from './chromium-starter.ts';

const CLOSE_MS = 2_000;

/**
 * Starts a Chromium beside the one that crawls, and ends it. Resolves with its name and version;
 * rejects as the starter does.
 */
export async function checkBrowser(deps: {
  readonly chromiumPath: string;
  readonly sandbox: SandboxMode;
  readonly logger: Logger;
}): Promise<string> {
  const chromium = await createChromiumStarter(deps).start();
  try {
    const { product } = await chromium.cdp.send('Browser.getVersion');
    return product;
  } finally {
    await chromium.close(CLOSE_MS);
  }
}
