import { invalidField } from './errors.ts';

/** Longest callback URL, in characters. */
const MAX_LENGTH = 2_048;

/**
 * Parses a callback URL and returns it in normal form (`URL.href`, without the fragment, which no
 * request carries). Throws `invalid` naming `callback_url` unless it is an absolute http or https
 * URL of at most 2,048 characters, before and after it is normalized. Credentials in it are kept.
 * Whether its address may be reached is decided when it is connected to.
 */
export function parseCallbackUrl(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '')
    throw invalidField(
      'callback_url',
      'callback_url must not be empty; leave it out for storage delivery.',
    );
  if (trimmed.length > MAX_LENGTH) throw tooLong();
  // The parser would read `http:host` as `http://host`, which its author may not have meant.
  if (!/^https?:\/\//i.test(trimmed)) throw notAUrl();
  const url = URL.parse(trimmed);
  if (url === null || url.hostname === '') throw notAUrl();
  url.hash = '';
  if (url.href.length > MAX_LENGTH) throw tooLong();
  return url.href;
}

function notAUrl() {
  return invalidField('callback_url', 'callback_url must be an absolute http or https URL.');
}

function tooLong() {
  return invalidField('callback_url', `callback_url must be at most ${MAX_LENGTH} characters.`);
}
