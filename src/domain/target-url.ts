import { invalidField } from './errors.ts';

const MAX_URL_BYTES = 8_192;

/** The URL of a crawl, and where it leads. */
export interface TargetUrl {
  /** As given, without surrounding white space. */
  readonly url: string;
  /** The host with its port, unless that is the usual one. */
  readonly host: string;
}

/**
 * Parses the URL of a push or an inline crawl. Throws `invalid` naming `url` unless it is an absolute http or https URL of at most 8,192
 * bytes.
 */
export function parseTargetUrl(text: string): TargetUrl {
  const url = text.trim();
  if (url === '') {
    throw invalidField('url', 'The url parameter is missing.', 'missing_url');
  }
  // A character has at most three bytes.
  if (url.length * 3 > MAX_URL_BYTES && Buffer.byteLength(url) > MAX_URL_BYTES) {
    throw invalidField('url', `The url is longer than ${MAX_URL_BYTES} bytes.`);
  }
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw invalidField(
      'url',
      'The url must be an absolute http or https URL, percent-encoded when it is a query parameter.',
    );
  }
  return { url, host: parsed.host };
}

/** The host of a URL with its port, unless that is the usual one; empty for what is no URL. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? '';
}
