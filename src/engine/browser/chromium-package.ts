import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const { resolve } = createRequire(import.meta.url);

/** The folder of the npm package that contains a Chromium; undefined where it is not installed. */
export function chromiumPackage(): string | undefined {
  try {
    return join(dirname(resolve('@sparticuz/chromium')), '..');
  } catch {
    // The checkout depends on it. For the installed package it is optional.
    return undefined;
  }
}

/** What to do on a machine without a Chromium. */
export const NO_CHROMIUM_ADVICE =
  'Install Chromium or Chrome (on Debian: apt-get install chromium), on Linux x64 also by `npm install --global @sparticuz/chromium`, or set CHROMIUM_PATH.';
