import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CrawlParametersSchema } from '../../../gen/queuedcrawler/v1/crawl_parameters_pb.ts';
import { parametersDocument } from '../../../scripts/parameters-document.ts';
import { settingsDocument } from '../../../scripts/settings-document.ts';
import { parameterTable } from '../../../src/domain/parameter-table.ts';
import { parseCrawlParameters } from '../../../src/domain/parameters.ts';

const names = parameterTable.map((parameter) => parameter.name);

test('the proto has a field for every parameter of the table, and no other', () => {
  const fields = CrawlParametersSchema.fields.map((field) => field.name);
  expect(new Set(fields.filter((name) => name !== 'cookies'))).toEqual(new Set(names));
});

test('the document says what the table says', () => {
  const document = readFileSync(new URL('../../../docs/parameters.md', import.meta.url), 'utf8');
  expect(document).toBe(parametersDocument(parameterTable));
});

test.each([
  ['amazon-product-details', / is product\.$/],
  ['google-serp', / is generic-extractor\.$/],
  ['x', /^[^;]+\.$/],
])('a scraper named %s is refused, with the nearest one if there is one', (scraper, message) => {
  expect(() => parseCrawlParameters({ scraper }, 'normal')).toThrow(
    expect.objectContaining({
      kind: 'invalid',
      field: 'scraper',
      message: expect.stringMatching(message),
    }),
  );
});

test('the document of settings has those that the service reads', () => {
  const document = readFileSync(new URL('../../../docs/settings.md', import.meta.url), 'utf8');
  expect(document).toBe(settingsDocument());
});

test('cookies is another name of set_cookies, by which it is refused', () => {
  const read = (input: Record<string, string>) => parseCrawlParameters(input, 'normal');
  const cookies = 'a=1';
  for (const input of [
    { cookies },
    { cookies, set_cookies: '' },
    { cookies, set_cookies: cookies },
  ]) {
    expect(read(input)).toEqual({ set_cookies: cookies });
  }
  for (const input of [{ cookies: 'a=\n' }, { cookies, set_cookies: 'b=2' }]) {
    expect(() => read(input)).toThrow(expect.objectContaining({ field: 'cookies' }));
  }
  expect(() => read({ set_cookies: 'a=\n' })).toThrow(
    expect.objectContaining({ field: 'set_cookies' }),
  );
});
