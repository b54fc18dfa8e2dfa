import { invalidField } from './errors.ts';

const MAX_URL_BYTES = 8_192;

/**
 * Parses the URL of a push or an inline crawl and returns it as given, without surrounding white
 * space. Throws `invalid` naming `url` unless it is an absolute http or https URL of at most 8,192
 * bytes.
 */
export function parseTargetUrl(text: string): string {
  const url = text.trim();
  if (url === '') {
    throw invalidField('url', 'The url parameter is missing.', 'missing_url');
  }
  if (Buffer.byteLength(url) > MAX_URL_BYTES) {
    throw invalidField('url', `The url is longer than ${MAX_URL_BYTES} bytes.`);
  }
  const parsed = URL.parse(url);
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol)) {
    throw invalidField(
      'url',
      'The url must be an absolute http or https URL, percent-encoded when it is a query parameter.',
    );
  }
  return url;
}

/** The host of a URL with its port, unless that is the usual one; empty for what is no URL. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? '';
}
