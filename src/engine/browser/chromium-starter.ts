import type { Logger } from '../../domain/logger.ts';
import { type CrawlerIdentity, userAgents } from '../http/user-agents.ts';
import { browserFolder, chromiumMajor, findChromium } from './chromium-binary.ts';
import { prepareFonts } from './chromium-fonts.ts';
import { NO_CHROMIUM_ADVICE } from './chromium-package.ts';
import { type ChromiumProcess, startChromium } from './chromium-process.ts';
import { createProfileFolder } from './profile-folders.ts';
import { NO_SANDBOX, runsAsRoot, type SandboxMode } from './sandbox.ts';

/** Starts Chromium with the sandbox mode of the operator. */
export interface ChromiumStarter {
  /**
   * Rejects when there is no Chromium, or it does not start, or not in the sandbox that is
   * required.
   */
  start(): Promise<ChromiumProcess>;
}

/**
 * Makes the starter. With mode `auto` it logs one warning when Chromium runs without its sandbox.
 */
export function createChromiumStarter(deps: {
  readonly chromiumPath: string;
  readonly sandbox: SandboxMode;
  /** As in `ChromiumOptions`; default `named`. */
  readonly identity?: CrawlerIdentity;
  /** As in `ChromiumOptions`; default true. */
  readonly webgl?: boolean;
  readonly logger: Logger;
}): ChromiumStarter {
  const { sandbox, logger } = deps;
  let warned = false;
  /** Whether mode `auto` tries the sandbox. */
  let sandboxWorks = !runsAsRoot();

  function warn(cause?: unknown): void {
    if (warned) return;
    warned = true;
    logger.warn(cause === undefined ? {} : { err: cause }, NO_SANDBOX);
  }

  return {
    async start() {
      const executablePath = await findChromium(deps.chromiumPath);
      if (executablePath === undefined) {
        throw new Error(`There is no Chromium on this machine. ${NO_CHROMIUM_ADVICE}`);
      }
      const { identity = 'named' } = deps;
      const major = await chromiumMajor(executablePath);
      const folder = await browserFolder();
      const fonts = await prepareFonts(folder);
      const startWith = async (inSandbox: boolean): Promise<ChromiumProcess> =>
        startChromium({
          executablePath,
          sandbox: inSandbox,
          fontsFile: fonts,
          identity,
          userAgent: major === undefined ? undefined : userAgents(identity, major).desktop,
          webgl: deps.webgl ?? true,
          profile: await createProfileFolder(folder),
        });
      if (sandbox === 'off') return startWith(false);
      if (sandbox === 'require') {
        if (runsAsRoot())
          throw new Error('Chromium has no sandbox for root; CHROMIUM_SANDBOX requires one');
        return startWith(true);
      }
      if (sandboxWorks) {
        try {
          return await startWith(true);
        } catch (error) {
          const unsandboxed = await startWith(false);
          // The sandbox was the cause: some containers do not permit it.
          sandboxWorks = false;
          warn(error);
          return unsandboxed;
        }
      }
      warn();
      return startWith(false);
    },
  };
}
