import { invalidField } from './errors.ts';

/**
 * Begins the names of the service's own crawlers; a client's name begins with a letter or digit.
 */
export const INTERNAL_PREFIX = '.';

/**
 * Whether a crawler is the service's own: left out of listings and quotas, and not to be addressed
 * by its name.
 */
export function isInternal(crawler: { readonly name: string }): boolean {
  return crawler.name.startsWith(INTERNAL_PREFIX);
}

/**
 * A crawler's name: 1 to 64 of `A-Z a-z 0-9 _ . -`, starting with a letter or digit, and not
 * `stats`, whose REST path is taken. Throws an invalid `name` otherwise.
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
