import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { errorFamilies, errorTable, startReasons } from '../../../scripts/error-table.ts';
import { errorsDocument } from '../../../scripts/errors-document.ts';

const root = resolve(import.meta.dirname, '../../..');

/** Reasons that are computed, as the source spells them; the families and rows of the table cover them. */
const COMPUTED = [
  'reason',
  'error.reason',
  'reason ?? `invalid_${lastName(field)}`',
  '`invalid_${leaf}`',
  '`${name}_quota_exceeded`',
];

/** Texts of the arguments of each call of `callee`, cut at the commas between them. */
function callsOf(source: string, callee: string): string[][] {
  return [...source.matchAll(new RegExp(`\\b${callee}\\(`, 'g'))].map((match) => {
    const parts = [''];
    let depth = 0;
    let quote = '';
    for (let at = match.index + match[0].length; at < source.length; at += 1) {
      const character = source[at] ?? '';
      if (quote !== '') {
        if (character === quote && source[at - 1] !== '\\') quote = '';
      } else if (/['"`]/.test(character)) quote = character;
      else if ('([{'.includes(character)) depth += 1;
      else if (')]}'.includes(character)) {
        if (depth === 0) break;
        depth -= 1;
      } else if (character === ',' && depth === 0) {
        parts.push('');
        continue;
      }
      parts[parts.length - 1] += character;
    }
    return parts.map((part) => part.trim());
  });
}

/** The words in quotes of an expression; for a conditional both, in its order. Comparisons are left out. */
function wordsIn(expression: string): string[] {
  const results = expression.includes('?') ? expression.slice(expression.indexOf('?')) : expression;
  return [...results.matchAll(/'([a-z_]+)'/g)].map((match) => match[1] ?? '');
}

interface Thrown {
  readonly reason: string;
  /** Kind of a DomainError, or status of a REST refusal. */
  readonly as: string;
}

/** Every reason that the source names, and the expressions of those it computes. */
function thrownIn(source: string): { readonly named: Thrown[]; readonly computed: string[] } {
  const named: Thrown[] = [];
  const computed: string[] = [];
  for (const callee of ['new DomainError', 'new GatewayError']) {
    for (const [kind = '', reason = ''] of callsOf(source, callee)) {
      const reasons = COMPUTED.includes(reason) ? [] : wordsIn(reason);
      const kinds = /^\d+$/.test(kind) ? [kind] : wordsIn(kind);
      if (reasons.length === 0) computed.push(reason);
      // `a ? 'x' : 'y'` in both arguments belongs together.
      for (const [index, each] of reasons.entries()) {
        named.push({ reason: each, as: kinds[index] ?? kinds[0] ?? '' });
      }
    }
  }
  for (const [, , reason = ''] of callsOf(source, 'invalidField')) {
    if (/^'[a-z_]+'$/.test(reason)) named.push({ reason: reason.slice(1, -1), as: 'invalid' });
  }
  for (const [reason = ''] of callsOf(source, 'new MessageFault')) {
    for (const each of wordsIn(reason)) named.push({ reason: each, as: 'invalid' });
  }
  // Replies written by hand: what HTTP's parser refuses, and the call without a token.
  for (const match of source.matchAll(/status: (\d{3}),[^{}]*?code: '([a-z_]+)'/g)) {
    named.push({ reason: match[2] ?? '', as: match[1] ?? '' });
  }
  return { named, computed };
}

const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => thrownIn(readFileSync(join(root, 'src', name), 'utf8')));
const named = sources.flatMap((source) => source.named);
const computed = sources.flatMap((source) => source.computed);

test('the document is made from the table', () => {
  expect(readFileSync(join(root, 'docs/errors.md'), 'utf8')).toBe(errorsDocument());
});

test('every reason that the source names is in the table, with its kind or status', () => {
  expect(named.length).toBeGreaterThan(50);
  const rows = new Map(errorTable.map(({ reason, as }) => [reason, as.map(String)]));
  const missing = named.filter(
    ({ reason, as }) => !startReasons.includes(reason) && rows.get(reason)?.includes(as) !== true,
  );
  expect(missing).toEqual([]);
});

test('the source names every reason of the table', () => {
  const all = new Set(named.map(({ reason }) => reason));
  const rows = [...errorTable.map(({ reason }) => reason), ...startReasons];
  // `internal` is what anything unknown is answered with.
  expect(rows.filter((reason) => !all.has(reason) && reason !== 'internal')).toEqual([]);
});

test('computed reasons are of a family of the table', () => {
  expect(computed.filter((expression) => !COMPUTED.includes(expression))).toEqual([]);
  expect(errorFamilies).toHaveLength(3);
});
