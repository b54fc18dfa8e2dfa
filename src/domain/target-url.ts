import { invalidField } from './errors.ts';
import { isPossibleHost } from './host-rules.ts';

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
 * bytes, whose host can exist.
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
  const parsed = parseHttpUrl(url);
  if (parsed === undefined) {
    throw invalidField(
      'url',
      'The url must be an absolute http or https URL, percent-encoded when it is a query parameter.',
    );
  }
  // What a process remembers of hosts is bounded by their number.
  if (!isPossibleHost(parsed.host)) {
    throw invalidField('url', 'The host of the url has more than 253 characters.');
  }
  return { url, host: parsed.host };
}

/** The host of a URL with its port, unless that is the usual one; empty for what is no URL. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? '';
}

/** An http or https URL, absolute or relative to `base`; undefined for any other text. */
export function parseHttpUrl(text: string, base?: string | URL): URL | undefined {
  const url = URL.parse(text, base);
  return url !== null && /^https?:$/.test(url.protocol) ? url : undefined;
}
