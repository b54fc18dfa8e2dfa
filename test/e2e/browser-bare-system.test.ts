import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findChromium } from '../../src/engine/browser/chromium-binary.ts';
import { bareLibraries, canHideLibraries } from '../support/bare-libraries.ts';
import { crawlInBrowser, htmlRoute } from '../support/browser-crawls.ts';
import { startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const needs = canHideLibraries ? '' : ' (needs Linux on x64 and the right to mount)';

/** Programs of root, and those of a namespace of its own, do not share a temporary folder. */
function temporary(path: string): Record<string, string> {
  return process.getuid?.() === 0 ? {} : { TMPDIR: path };
}

test.runIf(canHideLibraries)(
  `the browser starts on a system that has only the libraries of Debian's base${needs}`,
  async () => {
    const script = '<p id=p>plain</p><script>p.textContent = "js " + (1 + 1)</script>';
    await using site = await startSite({ routes: { '/script': htmlRoute(script) } });
    await using folder = await temporaryFolder();
    const chromium = (await findChromium('')) ?? '';
    await using bare = await bareLibraries(process.execPath, chromium);
    const env = { DATA_DIR: join(folder.path, 'data'), ...temporary(folder.path) };
    await using service = await startProcess(env, bare.launcher);
    const reply = await crawlInBrowser(service, `${site.url}/script`);
    expect(reply).toMatchObject({ original_status: 200 });
    expect(reply.body).toContain('js 2');
  },
);
