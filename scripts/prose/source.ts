import { type Comment, type Node, parseSync, Visitor } from 'oxc-parser';
import { markdownPassages } from './markdown.ts';
import type { Passage } from './rules.ts';

/** Markup, JavaScript, style sheets and SQL. */
const PROGRAM = /<\w|[{}]|^\s*(?:CREATE|ALTER|SELECT|INSERT|UPDATE|DELETE|WITH|PRAGMA)\b/;

const TESTS: ReadonlySet<string> = new Set(['test', 'it', 'describe']);

/**
 * The comments, the titles of tests, and the texts for people of a TypeScript or JavaScript file:
 * help, log lines, messages, texts of the console.
 */
export function sourcePassages(name: string, source: string): Passage[] {
  const lineOf = lineFinder(source);
  const { comments, program } = parseSync(name, source);
  const texts: Passage[] = [];
  const titles = new Set<number>();
  const code = new Set<number>();
  const add = (start: number, text: string): void => {
    const line = lineOf(start);
    if (titles.has(start)) texts.push({ line, text });
    else if (!code.has(start))
      // A line that is indented, as in usages, begins a text of its own.
      for (const part of text.split(/\n(?=\s)/).filter(isForPeople))
        texts.push(...markdownPassages(part).map((passage) => ({ ...passage, line })));
  };
  new Visitor({
    CallExpression({ callee, arguments: [title] }) {
      if (title?.type === 'Literal' && TESTS.has(rootName(callee))) titles.add(title.start);
    },
    MemberExpression({ object, property }) {
      // A list of words.
      if (property.type === 'Identifier' && property.name === 'split') code.add(object.start);
    },
    Literal({ value, start }) {
      if (typeof value === 'string') add(start, value);
    },
    TemplateLiteral({ quasis, start }) {
      add(start, quasis.map(({ value }) => value.cooked ?? '').join('Code'));
    },
    JSXText({ value, start }) {
      add(start, value);
    },
  }).visit(program);
  const blocks = groupLines(comments, source);
  return [...blocks.flatMap(({ start, text }) => markdownPassages(text, lineOf(start))), ...texts];
}

/** The comments of a proto file or a style sheet. */
export function lineCommentPassages(source: string): Passage[] {
  const passages: Passage[] = [];
  let block: { readonly line: number; readonly lines: string[] } | undefined;
  const end = (): void => {
    if (block !== undefined) passages.push(...markdownPassages(block.lines.join('\n'), block.line));
    block = undefined;
  };
  source.split('\n').forEach((line, index) => {
    const text = /^\s*\/\/ ?(.*)$/.exec(line)?.[1];
    if (text === undefined) return end();
    block ??= { line: index + 1, lines: [] };
    block.lines.push(text);
  });
  end();
  return passages;
}

/** Tells texts from names, markup and programs. */
function isForPeople(text: string): boolean {
  const words = text.trim().split(/\s+/);
  const plain = words.filter((word) => /^["'(]?\p{L}[\p{L}'-]+["')]?[,.;:?]?$/u.test(word));
  if (words.length > 20 && !/[.,:;]/.test(text)) return false;
  return words.length >= 3 && plain.length > words.length / 2 && !PROGRAM.test(text);
}

/** `test` of `test.each(rows)(title, ...)`. */
function rootName(callee: Node): string {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'MemberExpression') return rootName(callee.object);
  return callee.type === 'CallExpression' ? rootName(callee.callee) : '';
}

/** Line comments that follow one another are one text; the marks of comments are removed. */
function groupLines(
  comments: readonly Comment[],
  source: string,
): { readonly start: number; readonly text: string }[] {
  const groups: { start: number; end: number; type: string; text: string }[] = [];
  for (const { type, start, end, value } of comments) {
    const last = groups.at(-1);
    if (type === 'Block') {
      const text = value.replace(/^\*/, '').replaceAll(/^[ \t]*\* ?/gm, '');
      groups.push({ start, end, type, text: text.replaceAll(/\{@link ([^}]*)\}/g, '`$1`') });
    } else if (last?.type === 'Line' && /^[ \t]*\r?\n[ \t]*$/.test(source.slice(last.end, start))) {
      last.text += `\n${value.replace(/^ /, '')}`;
      last.end = end;
    } else groups.push({ start, end, type, text: value.replace(/^ /, '') });
  }
  return groups;
}

function lineFinder(source: string): (offset: number) => number {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => {
    const next = starts.findIndex((start) => start > offset);
    return next === -1 ? starts.length : next;
  };
}
