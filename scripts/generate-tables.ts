import { readFileSync, writeFileSync } from 'node:fs';
import { parameterTable } from '../src/domain/parameter-table.ts';
import { cliDocument } from './cli-document.ts';
import { errorsDocument } from './errors-document.ts';
import { parametersDocument } from './parameters-document.ts';
import { restDocument } from './rest-document.ts';
import { withSettings } from './settings-table.ts';

// Writes docs/parameters.md, docs/errors.md, docs/cli.md, docs/rest.md (from docs/openapi.json) and the table of settings in the README.
writeFileSync(
  new URL('../docs/parameters.md', import.meta.url),
  parametersDocument(parameterTable),
);
writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDocument());
writeFileSync(new URL('../docs/cli.md', import.meta.url), cliDocument());
const openApi = readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8');
writeFileSync(new URL('../docs/rest.md', import.meta.url), restDocument(JSON.parse(openApi)));
const readme = new URL('../README.md', import.meta.url);
writeFileSync(readme, withSettings(readFileSync(readme, 'utf8')));
