import type { Steps } from './in-turns.ts';

const STEP_BYTES = 64 * 1_024;
/** Parsers of clients fail at deeper nesting. */
const MAX_DEPTH = 10_000;
const WORD = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;
const MAX_WORD = 400;

const codeOf = (character: string): number => character.charCodeAt(0);
const QUOTE = codeOf('"');
const BACKSLASH = codeOf('\\');
const ESCAPES = new Set(Array.from('"\\/bfnrt', codeOf));
const WHITE = new Set(Array.from(' \t\n\r', codeOf));
const WORDS = new Set(Array.from('+-.0123456789Eaeflnrstu', codeOf));
/** What may come next, by the last token. `end` is `]` or `}` of the innermost value. */
type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end';

/**
 * Whether UTF-8 is JSON text other than `null`, in steps. To parse a long one would take a second at
 * once, and the memory of a million objects.
 */
export function* isJsonValue(bytes: Uint8Array): Steps<boolean> {
  const closers: number[] = [];
  let expected: Expected = 'value';
  let nextStep = STEP_BYTES;
  for (let at = 0; at < bytes.length; ) {
    if (at >= nextStep) {
      nextStep = at + STEP_BYTES;
      yield;
    }
    const code = bytes[at] ?? 0;
    if (WHITE.has(code)) {
      at += 1;
    } else if (code === QUOTE) {
      if (expected === 'colon' || expected === 'comma or end') return false;
      at = endOfString(bytes, at + 1);
      if (at < 0) return false;
      expected = expected.startsWith('key') ? 'colon' : 'comma or end';
    } else if (expected.endsWith('end') && code === closers.at(-1)) {
      closers.pop();
      expected = 'comma or end';
      at += 1;
    } else if (expected === 'comma or end') {
      if (code !== codeOf(',') || closers.length === 0) return false;
      expected = closers.at(-1) === codeOf('}') ? 'key' : 'value';
      at += 1;
    } else if (expected === 'colon') {
      if (code !== codeOf(':')) return false;
      expected = 'value';
      at += 1;
    } else if (expected.startsWith('key')) {
      return false;
    } else if (code === codeOf('[') || code === codeOf('{')) {
      if (closers.length === MAX_DEPTH) return false;
      // The code of each closer is that of its opener and two.
      closers.push(code + 2);
      expected = code === codeOf('[') ? 'value or end' : 'key or end';
      at += 1;
    } else {
      const end = endOfWord(bytes, at);
      const word = Buffer.from(bytes.subarray(at, end)).toString('latin1');
      if (!WORD.test(word) || (word === 'null' && closers.length === 0)) return false;
      expected = 'comma or end';
      at = end;
    }
  }
  return expected === 'comma or end' && closers.length === 0;
}

/** The place behind the closing quote; -1 without one, or if what is before is no string. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let at = start; at < bytes.length; at += 1) {
    const code = bytes[at] ?? 0;
    if (code === QUOTE) return at + 1;
    if (code < 0x20) return -1;
    if (code !== BACKSLASH) continue;
    at += 1;
    if (bytes[at] === codeOf('u')) {
      const digits = Buffer.from(bytes.subarray(at + 1, at + 5)).toString('latin1');
      if (!/^[\da-fA-F]{4}$/.test(digits)) return -1;
      at += 4;
    } else if (!ESCAPES.has(bytes[at] ?? 0)) {
      return -1;
    }
  }
  return -1;
}

function endOfWord(bytes: Uint8Array, start: number): number {
  let at = start;
  while (at - start < MAX_WORD && WORDS.has(bytes[at] ?? 0)) at += 1;
  return at;
}
