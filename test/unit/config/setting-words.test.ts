import { expect, test } from 'vitest';
import { settings } from '../../../src/config/settings.ts';

/** The words that a setting takes, as its refusal lists them; none when it takes other values. */
function wordsOf(parse: (value: string) => unknown): string[] {
  try {
    parse('no such word');
    return [];
  } catch (error) {
    const [, words = ''] = /^must be one of (.*), not /.exec((error as Error).message) ?? [];
    return words === '' ? [] : words.split(', ');
  }
}

const withWords = Object.values(settings)
  .map(({ variable, parse, meaning }) => ({ variable, meaning, words: wordsOf(parse) }))
  .filter(({ words }) => words.length > 0);

test('settings of words are found', () => {
  expect(withWords.map(({ variable }) => variable)).toEqual(
    expect.arrayContaining(['ROLE', 'LOG_REQUESTS', 'MCP']),
  );
});

test.each(withWords)('$variable: its description has each of its words', ({ meaning, words }) => {
  const described: readonly string[] = meaning.match(/[\w./]*\w/g) ?? [];
  expect(words.filter((word) => !described.includes(word))).toEqual([]);
});
