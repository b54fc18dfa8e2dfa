import { defined } from './defined.ts';
import { invalidField } from './errors.ts';
import { integerInRange } from './limits.ts';

/** An exception to the politeness of a crawler, for some hosts. */
export interface HostRule {
  /** A host, with its port or for all of its ports, or `*.` and a domain for all below it. */
  readonly pattern: string;
  /** Most requests at such a host at once, 0 for no limit; absent as for other hosts. */
  readonly maxPerHost?: number | undefined;
  /** Least time between the starts of two requests; absent as for other hosts. */
  readonly delayMs?: number | undefined;
  /** Nothing is asked of such a host. */
  readonly paused: boolean;
}

/** Bounds of what politeness asks for. */
export const POLITENESS_BOUNDS = { maxPerHost: 1_000, delayMs: 3_600_000 } as const;

const MAX_RULES = 100;
const WILDCARD = '*.';

/** Returns the rules as they are kept. Throws `invalid` naming the field below `field`. */
export function checkHostRules(field: string, rules: readonly HostRule[]): HostRule[] {
  if (rules.length > MAX_RULES) {
    throw invalidField(field, `${field} takes at most ${MAX_RULES} rules.`);
  }
  return rules.map(({ pattern, maxPerHost, delayMs, paused }, index) => {
    const at = `${field}[${index}]`;
    const upTo = (most: number, name: string, value: number | undefined) =>
      value === undefined ? undefined : integerInRange(`${at}.${name}`, value, 0, most);
    return {
      pattern: checkPattern(`${at}.pattern`, pattern),
      ...defined({
        maxPerHost: upTo(POLITENESS_BOUNDS.maxPerHost, 'max_per_host', maxPerHost),
        delayMs: upTo(POLITENESS_BOUNDS.delayMs, 'delay_ms', delayMs),
      }),
      paused,
    };
  });
}

function checkPattern(field: string, pattern: string): string {
  const isWild = pattern.startsWith(WILDCARD);
  const host = parseHost(isWild ? pattern.slice(WILDCARD.length) : pattern);
  if (host !== undefined) return isWild ? WILDCARD + host : host;
  throw invalidField(field, `${field} must be a host such as example.com:8080, or *.example.com.`);
}

/** A host, with its port unless that is the one of http; undefined for any other text. */
export function parseHost(text: string): string | undefined {
  const url = URL.parse(`http://${text.trim()}`);
  if (url === null || url.host === '' || url.pathname !== '/') return undefined;
  return url.username + url.password + url.search + url.hash === '' ? url.host : undefined;
}

/** Longest name of a host (RFC 1035, 2.3.4). */
const MAX_NAME_CHARACTERS = 253;

/** Whether a host, with or without a port, can exist: longer names are in no name server. */
export function isPossibleHost(host: string): boolean {
  return host.replace(/\.?(?::\d+)?$/, '').length <= MAX_NAME_CHARACTERS;
}

/** The first of the rules that is for a host. */
export function ruleFor(rules: readonly HostRule[], host: string): HostRule | undefined {
  const name = host.replace(/:\d+$/, '');
  return rules.find(({ pattern }) =>
    pattern.startsWith(WILDCARD)
      ? isBelow(host, pattern) || isBelow(name, pattern)
      : pattern === host || pattern === name,
  );
}

function isBelow(host: string, pattern: string): boolean {
  return host.endsWith(pattern.slice(1));
}
