import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { parseItem, parseParameters } from '../../../src/cli/push-item.ts';
import { readUrls, type UrlFormat } from '../../../src/cli/url-source.ts';

async function read(chunks: readonly string[], format: UrlFormat): Promise<unknown[]> {
  const { items } = readUrls(Readable.from(chunks.map((text) => Buffer.from(text))), format);
  return Array.fromAsync(items, ({ line, values }) => [line, values]);
}

test('lines are read wherever their parts are cut, however they end', async () => {
  const text =
    '\uFEFFhttp://a/\r\n\n# no\n  http://ü/ \n{"url":"http://c/","parameters":{"scroll":true}}';
  const expected = [
    [1, { url: 'http://a/' }],
    [4, { url: 'http://ü/' }],
    [5, { url: 'http://c/', scroll: true }],
  ];
  const bytes = Buffer.from(text);
  for (const size of [1, 2, 7, 1_000]) {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
    const { items } = readUrls(Readable.from(parts));
    expect(await Array.fromAsync(items, ({ line, values }) => [line, values])).toEqual(expected);
  }
});

test('a source tells how much of it was read', async () => {
  const text = 'http://a/\n'.repeat(10);
  const source = readUrls(Readable.from([Buffer.from(text)]), 'lines', text.length);
  expect(source.share()).toBe(0);
  await Array.fromAsync(source.items);
  expect(source.share()).toBe(1);
  expect(readUrls(Readable.from([])).share()).toBeUndefined();
});

test('a line of NDJSON that cannot be read is told, and the next ones are read', async () => {
  const text = '{"url":"http://a/"}\n{"url":\n{"url":"http://c/"}';
  const { items } = readUrls(Readable.from([Buffer.from(text)]), 'ndjson');
  expect(await Array.fromAsync(items)).toEqual([
    { line: 1, values: { url: 'http://a/' } },
    { line: 2, fault: 'this is not a JSON object' },
    { line: 3, values: { url: 'http://c/' } },
  ]);
});

test('what cannot be read stops it, and is named', async () => {
  await expect(read(['x'.repeat(3_000_000)], 'lines')).rejects.toThrow('a line is longer than');
  await expect(read(['url\n"a'], 'csv')).rejects.toThrow('the CSV cannot be read');
  await expect(read(['url,speed\nhttp://a,1'], 'csv')).rejects.toThrow(
    'line 1 must name the columns: "speed" is neither',
  );
  await expect(read(['\n\nmethod\nGET'], 'csv')).rejects.toThrow('line 3 must name the columns');
  await expect(read(['http://a/\nhttp://b/'], 'csv')).rejects.toThrow(
    'line 1 must name the columns: "http://a/" is neither',
  );
  const broken = new Readable({ read: () => undefined });
  const reading = Array.fromAsync(readUrls(broken, 'csv').items);
  broken.destroy(new Error('the disk is gone'));
  await expect(reading).rejects.toThrow('the disk is gone');
});

test('parameters of a URL win over those of all; types and words are checked', () => {
  const all = parseParameters(['format=json', 'page_wait=500', 'user_agent=a=b']);
  const item = parseItem({ url: 'http://a/', page_wait: 7, scroll: 'true', device: '' }, all);
  expect(item).toMatchObject({
    url: 'http://a/',
    parameters: { format: 2, pageWait: 7, userAgent: 'a=b', scroll: true },
  });
  expect(item.parameters?.device).toBeUndefined();
  const faults: readonly [values: Record<string, unknown>, text: string][] = [
    [{}, '"url" is missing'],
    [{ url: 'u', speed: 1 }, '"speed" is neither'],
    [{ url: 'u', scroll: 'yes' }, 'scroll must be true or false, not "yes"'],
    [{ url: 'u', page_wait: 'long' }, 'page_wait must be a whole number'],
    [{ url: 'u', format: 'pdf' }, 'format must be one of html, json, md, not "pdf"'],
  ];
  for (const [values, text] of faults) {
    expect(() => parseItem(values, parseParameters([]))).toThrow(text);
  }
  expect(() => parseParameters(['format'])).toThrow('--param must be name=value');
});
