import { readFileSync, writeFileSync } from 'node:fs';
import { parameterTable } from '../src/domain/parameter-table.ts';
import { cliDocument } from './cli-document.ts';
import { errorsDocument } from './errors-document.ts';
import { parametersDocument } from './parameters-document.ts';
import { restDocument } from './rest-document.ts';
import { settingsDocument } from './settings-document.ts';

// Writes docs/parameters.md, docs/errors.md, docs/cli.md, docs/settings.md, and docs/rest.md from docs/openapi.json.
writeFileSync(
  new URL('../docs/parameters.md', import.meta.url),
  parametersDocument(parameterTable),
);
writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsDocument());
writeFileSync(new URL('../docs/cli.md', import.meta.url), cliDocument());
const openApi = readFileSync(new URL('../docs/openapi.json', import.meta.url), 'utf8');
writeFileSync(new URL('../docs/rest.md', import.meta.url), restDocument(JSON.parse(openApi)));
writeFileSync(new URL('../docs/settings.md', import.meta.url), settingsDocument());
