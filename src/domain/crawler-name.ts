import { invalidField } from './errors.ts';

/**
 * The first character of the names of internal crawlers. A client's name starts with a letter or
 * digit.
 */
export const INTERNAL_PREFIX = '.';

/**
 * Whether a crawler is internal: not listed, not counted in quotas, and not addressable by its
 * name.
 */
export function isInternal(crawler: { readonly name: string }): boolean {
  return crawler.name.startsWith(INTERNAL_PREFIX);
}

/** Whether all characters of a text may be in the name of a crawler, also of an internal one. */
export function hasNameCharacters(text: string): boolean {
  return /^[A-Za-z0-9_.-]*$/.test(text);
}

/**
 * Parses the name of a crawler. Throws `invalid` naming `name` unless it is 1 to 64 of `A-Z a-z 0-9
 * _ . -`, starts with a letter or digit, and is not `stats`, which has another meaning in REST
 * paths.
 */
export function parseCrawlerName(text: string): string {
  if (text === '') throw invalidField('name', 'The name is missing.', 'missing_name');
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text)) {
    throw invalidField(
      'name',
      'name must be 1 to 64 of A-Z a-z 0-9 _ . - and start with a letter or digit.',
    );
  }
  if (text === 'stats') throw invalidField('name', 'A crawler cannot be named stats.');
  return text;
}
