import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, '..', '..', 'package.json');

/** The version of the program, as `package.json` has it. */
export const VERSION = (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
