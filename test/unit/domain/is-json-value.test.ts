import { expect, test } from 'vitest';
import { isJsonValue } from '../../../src/domain/is-json-value.ts';
import { createNoise } from '../../support/noise.ts';
import { atOnce } from '../../support/steps.ts';

const PIECES = [
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '"a"',
  '"\\u00e9"',
  '"\\x"',
  '"é"',
  '1',
  '-0.5e+3',
  '01',
  '1.',
  'true',
  'nul',
  'null',
  ' ',
  '\n',
  '\t',
  '\u00a0',
  '"a":',
];

function parses(text: string): boolean {
  try {
    return JSON.parse(text) !== null;
  } catch {
    return false;
  }
}

test('it is what JSON.parse takes, but null', () => {
  const noise = createNoise(11);
  const texts = PIECES.flatMap((first) =>
    PIECES.flatMap((second) => PIECES.map((third) => first + second + third)),
  );
  for (let n = 0; n < 20_000; n += 1) {
    let text = '';
    for (let left = 1 + noise.int(9); left > 0; left -= 1)
      text += PIECES[noise.int(PIECES.length)] ?? '';
    texts.push(text);
  }
  texts.push(
    '',
    ' {"a": [1, {"b": "\\ud83d\\\\"}, []], "c": {}} ',
    '"\u0001"',
    '"\\u12"',
    '[1 2]',
    '\ufeff[]',
  );
  const wrong = texts.filter((text) => atOnce(isJsonValue(Buffer.from(text))) !== parses(text));
  expect(wrong).toEqual([]);
  expect(texts.filter(parses).length).toBeGreaterThan(500);
});
