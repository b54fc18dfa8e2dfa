import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readApi } from './openapi/descriptors.ts';
import { openApiDocument } from './openapi/document.ts';

// Writes docs/openapi.json. With --check it writes nothing and fails when the file is out of date.
const root = fileURLToPath(new URL('../', import.meta.url));
const target = `${root}docs/openapi.json`;
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { version: string };
const text = `${JSON.stringify(openApiDocument(readApi(root), version), undefined, 2)}\n`;

if (!process.argv.includes('--check')) {
  mkdirSync(`${root}docs`, { recursive: true });
  writeFileSync(target, text);
} else if (readFileSync(target, 'utf8') !== text) {
  console.error('docs/openapi.json is out of date: run npm run docs');
  process.exitCode = 1;
}
