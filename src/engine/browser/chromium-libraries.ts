import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of an unpacked Chromium that has the libraries of its package. */
export const LIBRARIES_FOLDER = 'libraries';

/** Where systems keep their libraries. They get security updates, so they are preferred. */
const SYSTEM_FOLDERS = [
  '/lib/x86_64-linux-gnu',
  '/usr/lib/x86_64-linux-gnu',
  '/lib64',
  '/usr/lib64',
  '/lib',
  '/usr/lib',
];

/**
 * The environment by which an unpacked Chromium finds the libraries of its package that the system
 * lacks. Empty for any other Chromium.
 */
export function libraryEnvironment(executablePath: string): Readonly<Record<string, string>> {
  const own = join(dirname(executablePath), LIBRARIES_FOLDER);
  return existsSync(own) ? { LD_LIBRARY_PATH: [...SYSTEM_FOLDERS, own].join(':') } : {};
}

/** The packages of Debian and Ubuntu with what Chromium needs in addition to the C library. */
const PACKAGES: readonly (readonly [RegExp, string])[] = [
  [/^lib(nss3|nssutil3|smime3|ssl3|nspr4|plc4|plds4|expat)\.so/, 'libnss3 libexpat1'],
  [/^libgcc_s\.so/, 'libgcc-s1'],
];

/** What to install when the loader's message names a missing library; undefined when it does not. */
export function missingLibraryAdvice(message: string): string | undefined {
  const library = /shared libraries: ([^\s:]+)/.exec(message)?.[1];
  if (library === undefined) return undefined;
  const packages = PACKAGES.find(([pattern]) => pattern.test(library))?.[1];
  return packages === undefined
    ? `Install the package that has ${library}, or set CHROMIUM_PATH.`
    : `Install the library, on Debian and Ubuntu: apt-get install ${packages}.`;
}
