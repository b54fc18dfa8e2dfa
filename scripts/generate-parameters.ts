import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parameterTable } from '../src/domain/parameter-table.ts';
import { parametersDocument } from './parameters-document.ts';

// Writes docs/parameters.md.
const target = fileURLToPath(new URL('../docs/parameters.md', import.meta.url));
writeFileSync(target, parametersDocument(parameterTable));
