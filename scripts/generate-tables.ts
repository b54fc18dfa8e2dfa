import { readFileSync, writeFileSync } from 'node:fs';
import { parameterTable } from '../src/domain/parameter-table.ts';
import { parametersDocument } from './parameters-document.ts';
import { withSettings } from './settings-table.ts';

// Writes docs/parameters.md and the README's table of settings.
writeFileSync(
  new URL('../docs/parameters.md', import.meta.url),
  parametersDocument(parameterTable),
);
const readme = new URL('../README.md', import.meta.url);
writeFileSync(readme, withSettings(readFileSync(readme, 'utf8')));
