import type { Logger } from '../../domain/logger.ts';
import { browserFolder, findChromium } from './chromium-binary.ts';
import { fontsFile } from './chromium-fonts.ts';
import { type ChromiumProcess, startChromium } from './chromium-process.ts';
import { makeProfileFolder } from './profile-folders.ts';
import { NO_SANDBOX, runsAsRoot, type SandboxWish } from './sandbox.ts';

export type { SandboxWish } from './sandbox.ts';

/** Starts Chromium as the operator wants it. */
export interface ChromiumStarter {
  /** Rejects when there is none, it does not start, or not in the sandbox that is required. */
  start(): Promise<ChromiumProcess>;
}

/**
 * Makes the starter. It warns once when Chromium runs without its sandbox though nobody has asked
 * for that.
 */
export function createChromiumStarter(deps: {
  readonly chromiumPath: string;
  readonly sandbox: SandboxWish;
  readonly logger: Logger;
}): ChromiumStarter {
  const { sandbox, logger } = deps;
  let warned = false;
  /** What `auto` has found out. */
  let works = !runsAsRoot();

  function warn(cause?: unknown): void {
    if (warned) return;
    warned = true;
    logger.warn(cause === undefined ? {} : { err: cause }, NO_SANDBOX);
  }

  return {
    async start() {
      const executablePath = await findChromium(deps.chromiumPath);
      if (executablePath === undefined) throw new Error('There is no Chromium on this machine');
      const folder = await browserFolder();
      const fonts = await fontsFile(folder);
      const startWith = async (inSandbox: boolean): Promise<ChromiumProcess> =>
        startChromium({
          executablePath,
          sandbox: inSandbox,
          fontsFile: fonts,
          profile: await makeProfileFolder(folder),
        });
      if (sandbox === 'off') return startWith(false);
      if (sandbox === 'require') {
        if (runsAsRoot())
          throw new Error('Chromium has no sandbox for root; CHROMIUM_SANDBOX requires one');
        return startWith(true);
      }
      if (works) {
        try {
          return await startWith(true);
        } catch (error) {
          const without = await startWith(false);
          // It was the sandbox, then: some containers refuse it.
          works = false;
          warn(error);
          return without;
        }
      }
      warn();
      return startWith(false);
    },
  };
}
