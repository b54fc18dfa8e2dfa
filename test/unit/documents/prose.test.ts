import { expect, test } from 'vitest';
import { markdownPassages } from '../../../scripts/prose/markdown.ts';
import { complaintsOf } from '../../../scripts/prose/rules.ts';
import { sourcePassages } from '../../../scripts/prose/source.ts';

const words = (count: number): string => `${'word '.repeat(count - 1)}word.`;

test.each([
  ['30 words', words(30), []],
  ['31 words', words(31), ['31 words: word word word word word word word word ...']],
  ['two sentences of 20 words', `${words(20)} W${words(20)}`, []],
  ['an abbreviation, which ends no sentence', `${words(20)} e.g. ${words(20)}`, [/^41 words/]],
  ['code, which is one word', `${words(29).slice(0, -1)} \`a b c d e\`.`, []],
  ['an expression with a plainer word', ['It waits so', 'long.'].join(' '), [/^"so long"/]],
  ['an expression over two lines', ['The crawl goes', 'on.'].join('\n'), [/^"goes on"/]],
])('Markdown with %s', (_case, text, complaints) => {
  const found = markdownPassages(text).flatMap(complaintsOf);
  expect(found.map(({ message }) => message)).toEqual(
    complaints.map((each) => (typeof each === 'string' ? each : expect.stringMatching(each))),
  );
});

test('comments, titles of tests and texts for people are read, names and programs are not', () => {
  const source = [
    '// A comment.',
    '// It continues.',
    "test('a title', () => {});",
    "log.info('a text for people');",
    'const message = `takes ${seconds} seconds at most`;',
    "const name = 'some-name';",
    "const tags = 'address article aside'.split(' ');",
    "const program = 'let name = () => { call(); };';",
  ].join('\n');
  expect(sourcePassages('some.ts', source)).toEqual([
    { line: 1, text: 'A comment.\nIt continues.' },
    { line: 3, text: 'a title' },
    { line: 4, text: 'a text for people' },
    { line: 5, text: 'takes Code seconds at most' },
  ]);
});
