import { createRequire } from 'node:module';

/** What the command line reads of `package.json`. */
interface Manifest {
  readonly version: string;
  readonly scripts: { readonly start: string };
}

/** The project's `package.json`. */
export const manifest = createRequire(import.meta.url)('../../package.json') as Manifest;
