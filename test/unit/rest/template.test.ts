import { expect, test } from 'vitest';
import { parseTemplate } from '../../../src/rest/template.ts';
import { createTrie } from '../../../src/rest/trie.ts';

const any = { kind: 'any' };
const literal = (text: string) => ({ kind: 'literal', text });

test.each([
  ['/', [], [], ''],
  ['/a', [literal('a')], [], ''],
  ['/a/{b}', [literal('a'), any], [{ field: 'b', from: 1, to: 2 }], ''],
  ['/{a.b_c}', [any], [{ field: 'a.b_c', from: 0, to: 1 }], ''],
  // A variable over several segments.
  ['/{n=x/*}/y', [literal('x'), any, literal('y')], [{ field: 'n', from: 0, to: 2 }], ''],
  // Everything that is left.
  ['/f/{p=**}', [literal('f'), { kind: 'rest' }], [{ field: 'p', from: 1, to: undefined }], ''],
  ['/a/{b}:cancel', [literal('a'), any], [{ field: 'b', from: 1, to: 2 }], 'cancel'],
  ['/a%20b/*', [literal('a b'), any], [], ''],
])('%s', (source, segments, variables, verb) => {
  expect(parseTemplate(source)).toEqual({ source, segments, variables, verb });
});

test.each([
  ['a', '"/" expected at position 0'],
  ['/a/', 'a segment expected at position 3'],
  ['/a//b', 'a segment expected at position 3'],
  ['/{a', '"}" expected at position 3'],
  ['/{}', 'a field name expected at position 2'],
  ['/{a}/{a}', '"a" is bound twice at position 7'],
  ['/**/a', 'nothing may follow "**" at position 4'],
  ['/{p=**}/{q}', 'nothing may follow "**" at position 10'],
  ['/a:', 'a verb expected at position 3'],
  ['/a b', 'unexpected text at position 2'],
])('%s is refused', (source, reason) => {
  expect(() => parseTemplate(source)).toThrow(`path template "${source}": ${reason}`);
});

test('literals beat variables, and are left again when they lead nowhere', () => {
  const trie = createTrie<string>();
  for (const [method, path] of [
    ['GET', '/c/{t}'],
    ['GET', '/c/{t}/stats'],
    ['GET', '/c/{t}/{n}'],
    ['PUT', '/c/{t}/{n}'],
    ['POST', '/c/{t}/{n}/pause'],
    ['GET', '/c/{t}/stats/{rest=**}'],
    ['POST', '/c/{t}:stop'],
  ] as const) {
    trie.add(method, parseTemplate(path), `${method} ${path}`);
  }
  const find = (method: string, path: string) => trie.find(method, path.slice(1).split('/'));
  expect(find('GET', '/c/T/stats')).toBe('GET /c/{t}/stats');
  expect(find('GET', '/c/T/other')).toBe('GET /c/{t}/{n}');
  expect(find('PUT', '/c/T/stats')).toBe('PUT /c/{t}/{n}');
  expect(find('POST', '/c/T/stats/pause')).toBe('POST /c/{t}/{n}/pause');
  expect(find('GET', '/c/T/stats/a/b')).toBe('GET /c/{t}/stats/{rest=**}');
  expect(find('POST', '/c/T:stop')).toBe('POST /c/{t}:stop');
  expect(find('GET', '/c/T:x')).toBe('GET /c/{t}');
  expect(find('GET', '/c/')).toBeUndefined();
  expect(find('GET', '/c//stats')).toBeUndefined();
  expect(trie.methods(['c', 'T', 'stats'])).toEqual(['GET', 'PUT']);
  expect(trie.methods(['c'])).toEqual([]);
  expect(() => trie.add('GET', parseTemplate('/c/{x}/{y}'), '')).toThrow(
    'GET /c/{x}/{y} is bound twice, also by /c/{t}/{n}',
  );
});
