import { getOrInsert } from '../../domain/get-or-insert.ts';
import type { Steps } from '../../domain/in-turns.ts';

/** The rules of a robots.txt for one crawler. */
export interface RobotsRules {
  /** Whether a URL of the file's site may be crawled. */
  allows(url: URL): boolean;
  /** Seconds; 0 without a crawl-delay. */
  readonly crawlDelay: number;
  /** What the rules take of memory, about. */
  readonly bytes: number;
}

// A site can write anything into its file, and every URL of the site pays for it. So everything is
// bounded, and what exceeds these limits is ignored. The number of rules has the bound of the file alone.
const MAX_STARS = 16;
const MAX_RULE_LENGTH = 2_048;
/** Of the path with its query. Of a longer one only the beginning is matched. */
const MAX_PATH_LENGTH = 2_048;
/**
 * Work for one URL, in characters searched; 4 ms at most. A URL that needs more counts as
 * disallowed.
 */
const MAX_SEARCHED = 500_000;
/**
 * A search for a text of this length counts twice, because it may compare each position many times.
 */
const COSTLY_LENGTH = 32;
/** Memory of a rule in addition to its characters. */
const RULE_BYTES = 150;
/** Characters that are parsed in one step: two milliseconds where all of them have to be encoded. */
const STEP_CHARACTERS = 4_096;

/** Other records, such as those of sitemaps, end no group (RFC 9309, 2.2.4). */
const RULES: ReadonlySet<string> = new Set(['allow', 'disallow', 'crawl-delay']);

interface Rule {
  readonly allow: boolean;
  /** RFC 9309, 2.2.2: the rule with the most octets wins. */
  readonly length: number;
  /** The texts between the wildcards; the first begins the path. */
  readonly parts: readonly string[];
  /** `$`: the last part ends the path. */
  readonly toEnd: boolean;
}

interface Group {
  /** The rules of each length, those that allow behind those that disallow: see {@link rank}. */
  readonly ranks: Map<number, Rule[]>;
  bytes: number;
  crawlDelay: number;
}

/**
 * Parses a file for one crawler, in steps: all groups that name it, whatever the case, else those
 * for `*`. Takes linear time and memory.
 */
export function* parseRobots(text: string, crawlerName: string): Steps<RobotsRules> {
  const own = newGroup();
  const everyone = newGroup();
  const names = crawlerName.toLowerCase();
  let isOwnNamed = false;
  let applies = { own: false, everyone: false };
  let isNaming = false;
  let characters = 0;

  for (const line of splitLines(text)) {
    characters += line.length + 1;
    if (characters > STEP_CHARACTERS) {
      characters = 0;
      yield;
    }
    const [key, value] = parseField(line);
    if (key === 'user-agent') {
      if (!isNaming) applies = { own: false, everyone: false };
      isNaming = true;
      if (value === '*') applies.everyone = true;
      else if (productToken(value) === names) applies.own = isOwnNamed = true;
    } else if (RULES.has(key)) {
      isNaming = false;
      if (applies.own) addRule(own, key, value);
      if (applies.everyone) addRule(everyone, key, value);
    }
  }
  const { ranks, crawlDelay, bytes } = isOwnNamed ? own : everyone;
  // The longest rule first, and `allow` before `disallow`: the first rule that matches decides.
  const sorted = Array.from(ranks).sort(([a], [b]) => b - a);
  const rules = sorted.flatMap(([, ofRank]) => ofRank);
  return { crawlDelay, bytes, allows: (url) => isAllowed(rules, url) };
}

/** The higher it is, the earlier a rule is tried. There are far fewer of these numbers than rules. */
function rank({ length, allow }: Rule): number {
  return 2 * length + Number(allow);
}

function newGroup(): Group {
  return { ranks: new Map(), bytes: 0, crawlDelay: 0 };
}

function* splitLines(text: string): Generator<string> {
  const breaks = /\r\n|\r|\n/g;
  let from = text.startsWith('\ufeff') ? 1 : 0;
  for (const { index, 0: separator } of text.matchAll(breaks)) {
    yield text.slice(from, index);
    from = index + separator.length;
  }
  yield text.slice(from);
}

function parseField(line: string): [key: string, value: string] {
  const comment = line.indexOf('#');
  const plain = comment < 0 ? line : line.slice(0, comment);
  const colon = plain.indexOf(':');
  if (colon < 0) return ['', ''];
  return [plain.slice(0, colon).trim().toLowerCase(), plain.slice(colon + 1).trim()];
}

/** The product token of a user agent: `QueuedCrawler/1.0` means `QueuedCrawler`. */
function productToken(userAgent: string): string {
  return (/^[A-Za-z_-]{0,100}/.exec(userAgent)?.[0] ?? '').toLowerCase();
}

function addRule(group: Group, key: string, value: string): void {
  if (key === 'crawl-delay') {
    const seconds = Number(value);
    if (seconds > 0) group.crawlDelay = seconds;
    return;
  }
  if (value === '') return;
  // Several stars in a row mean the same as one.
  const pattern = value.replace(/\*+/g, '*');
  if (pattern.length > MAX_RULE_LENGTH) return;
  const rule = parseRule(pattern, key === 'allow');
  if (rule.parts.length > MAX_STARS) return;
  getOrInsert(group.ranks, rank(rule), () => []).push(rule);
  group.bytes += RULE_BYTES + rule.length;
}

function parseRule(value: string, allow: boolean): Rule {
  const toEnd = value.endsWith('$');
  const pattern = normalize(toEnd ? value.slice(0, -1) : value);
  const parts = pattern.split('*').map(copied);
  // A star at the end adds nothing.
  if (!toEnd && parts.length > 1 && parts.at(-1) === '') parts.pop();
  return { allow, length: pattern.length + (toEnd ? 1 : 0), parts, toEnd };
}

/** The same text. A part of a text keeps the whole one in memory, here the file. */
function copied(ascii: string): string {
  return Buffer.from(ascii, 'latin1').toString('latin1');
}

/** Normalizes percent-encoding, so that equivalent paths become equal (RFC 9309, 2.2.2). */
function normalize(path: string): string {
  return path
    .replace(/[^\x20-\x7e]+/gu, (run) => encodeURIComponent(run.toWellFormed()))
    .replace(/%[0-9a-f]{2}/gi, (escape) => {
      const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
      return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
    });
}

function isAllowed(rules: readonly Rule[], url: URL): boolean {
  if (url.pathname === '/robots.txt') return true;
  const whole = normalize((url.pathname + url.search).slice(0, 4 * MAX_PATH_LENGTH));
  const path = whole.slice(0, MAX_PATH_LENGTH);
  const isCut = whole.length > path.length;
  let searched = 0;
  for (const rule of rules) {
    if (!path.startsWith(rule.parts[0] ?? '')) continue;
    const end = matchMiddle(rule, path);
    searched += end.searched;
    if (searched > MAX_SEARCHED) return false;
    if (end.at >= 0 && matchesEnd(rule, path, end.at, isCut)) return rule.allow;
  }
  return true;
}

/**
 * Finds the parts between the first and the last, one after the other. Each is taken at its first
 * position, which leaves the most room for the next. `at` is where the last of them ends, -1 when
 * one is missing.
 */
function matchMiddle(
  { parts, toEnd }: Rule,
  path: string,
): { readonly at: number; readonly searched: number } {
  let at = parts[0]?.length ?? 0;
  let searched = 0;
  for (const part of parts.slice(1, toEnd ? -1 : undefined)) {
    const found = path.indexOf(part, at);
    const end = found < 0 ? path.length : found + part.length;
    searched += (end - at) * (1 + part.length / COSTLY_LENGTH);
    if (found < 0) return { at: -1, searched };
    at = end;
  }
  return { at, searched };
}

function matchesEnd({ parts, toEnd }: Rule, path: string, from: number, isCut: boolean): boolean {
  if (!toEnd) return true;
  if (isCut) return false;
  if (parts.length === 1) return from === path.length;
  const end = parts.at(-1) ?? '';
  return path.length - end.length >= from && path.endsWith(end);
}
