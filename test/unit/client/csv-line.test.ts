import { expect, test } from 'vitest';
import { csvLine } from '../../../src/client/csv-line.ts';

test('cells with separators are quoted', () => {
  expect(csvLine(['a', 'b,c', 'd"e', 'f\ng'])).toBe('a,"b,c","d""e","f\ng"\r\n');
});

test.each([
  ['=HYPERLINK("http://evil.test/")', '"\'=HYPERLINK(""http://evil.test/"")"'],
  ['+1+2', "'+1+2"],
  ['-2+3', "'-2+3"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
])('the formula %s is a text for a spreadsheet', (cell, written) => {
  expect(csvLine([cell])).toBe(`${written}\r\n`);
});

test('numbers and URLs stay as they are', () => {
  expect(csvLine(['-1.5', '200', 'https://example.com/?a=1'])).toBe(
    '-1.5,200,https://example.com/?a=1\r\n',
  );
});
