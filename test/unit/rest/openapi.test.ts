import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { type DescribedApi, readApi } from '../../../scripts/openapi/descriptors.ts';
import { openApiDocument } from '../../../scripts/openapi/document.ts';
import { restDocument } from '../../../scripts/rest-document.ts';
import { httpRules } from '../../../src/rest/http-rule.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

type Json = { readonly [name: string]: Json };

let api: DescribedApi;
let text: string;
let made: Json;
beforeAll(() => {
  const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  api = readApi(root);
  text = `${JSON.stringify(openApiDocument(api, version), undefined, 2)}\n`;
  made = JSON.parse(text);
});

test('docs/openapi.json is what the protos say; "npm run docs" writes it', () => {
  expect(readFileSync(`${root}docs/openapi.json`, 'utf8')).toBe(text);
});

test('docs/rest.md lists what the document has; "npm run docs" writes it', () => {
  expect(readFileSync(`${root}docs/rest.md`, 'utf8')).toBe(restDocument(JSON.parse(text)));
});

test('docs/rest.md says where calls other than GET take what they need', () => {
  const rowOf = (place: string) =>
    restDocument(JSON.parse(text))
      .split('\n')
      .find((line) => line.startsWith(`| \`${place}\` |`));
  const crawler = '/crawler/{token}/{name}';
  for (const call of ['pause', 'unpause', 'purge']) {
    expect(rowOf(`POST ${crawler}/hosts/${call}`)).toMatch(/\| query: `host` \|$/);
  }
  expect(rowOf(`POST ${crawler}/delete_job`)).toMatch(/\| query: `rid` \|$/);
  expect(rowOf('POST /storage/bulk_delete')).toMatch(/\| body: `rids` \|$/);
  expect(rowOf('POST /')).toMatch(/\| query: the \[parameters\]/);
  expect(rowOf('GET /storage')).not.toContain('query:');
});

test('every rule has an operation, every reference a target', () => {
  for (const method of api.services.flatMap((service) => service.methods)) {
    for (const { verb, template } of httpRules(method)) {
      expect(made['paths']?.[template.source], template.source).toHaveProperty(verb.toLowerCase());
    }
  }
  const references = [...text.matchAll(/"\$ref": "#\/([^"]+)"/g)].map(([, path = '']) => path);
  expect(references.length).toBeGreaterThan(100);
  for (const path of new Set(references)) expect(made).toHaveProperty(path.split('/'));
});

test('every array says what it holds', () => {
  const schemas: Json[] = [];
  const walk = (value: Json): void => {
    if (typeof value !== 'object' || value === null) return;
    schemas.push(value);
    Object.values(value).forEach(walk);
  };
  walk(made);
  const arrays = schemas.filter((schema) => (schema['type'] as unknown) === 'array');
  expect(arrays.length).toBeGreaterThan(10);
  for (const array of arrays) expect(array).toHaveProperty('items');
});

test('comments, words and presence come through', () => {
  expect(made['paths']?.['/crawler/{token}']?.['post']?.['description']).toMatch(
    /^Creates a crawler\. /,
  );
  const crawler = made['components']?.['schemas']?.['Crawler'];
  expect(crawler?.['properties']?.['status']).toEqual({
    type: 'string',
    enum: ['', 'running', 'paused'],
    description: 'Whether it takes work.',
  });
  expect(crawler?.['required']).toContain('concurrency');
  expect(crawler?.['required']).not.toContain('callback_url');
  expect(made['components']?.['schemas']?.['CountResultsResponse']?.['properties']).toHaveProperty(
    'totalCount',
  );
});
