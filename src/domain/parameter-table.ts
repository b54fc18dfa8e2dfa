import type { TokenType } from './account.ts';
import { parseClickSelectors } from './click-selectors.ts';
import { invalidField } from './errors.ts';
import { CONNECTION_HEADERS, HEADER_NAME, HEADER_VALUE } from './header-rules.ts';
import type { CrawlParameters } from './parameters.ts';
import { MAX_PICTURE_PIXELS, requestedScreen, screenPixels } from './screens.ts';

/** The type of a parameter, and its allowed values. */
export type ParameterKind =
  | { readonly type: 'boolean' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number; readonly unit: string }
  | { readonly type: 'word'; readonly words: readonly string[] }
  | {
      readonly type: 'text';
      readonly maxLength: number;
      /** Throws an Error that says what is allowed; returns the text in its normal form. */
      readonly check?: (text: string) => string;
    };

/** One crawl parameter. */
export interface Parameter {
  readonly name: keyof CrawlParameters;
  readonly kind: ParameterKind;
  /** The value that applies when it is absent; empty for none. */
  readonly fallback: string;
  /** Whether it needs a browser, and therefore the JavaScript token. */
  readonly javascript: boolean;
  /** A sentence for the documentation. */
  readonly meaning: string;
}

/** The values of `scraper`. */
export const SCRAPER_NAMES: readonly string[] = [
  'generic-extractor',
  'email-extractor',
  'links',
  'article',
  'product',
  'metadata',
];

function checkHeaders(text: string): string {
  for (const part of text.split('|').filter((each) => each.trim() !== '')) {
    const colon = part.indexOf(':');
    const name = part.slice(0, Math.max(colon, 0)).trim();
    if (!HEADER_NAME.test(name)) throw new Error('must have the form name:value|name2:value2');
    if (CONNECTION_HEADERS.has(name.toLowerCase()))
      throw new Error(`must not set ${name.toLowerCase()}`);
  }
  return checkPrintable(text);
}

function checkPrintable(text: string): string {
  if (!HEADER_VALUE.test(text)) {
    throw new Error('must be printable characters of Latin-1');
  }
  return text;
}

function checkCountry(text: string): string {
  if (!/^[A-Za-z]{2}$/.test(text)) throw new Error('must be a two-letter ISO 3166-1 country');
  return text.toUpperCase();
}

function checkStatuses(text: string): string {
  if (!/^\s*[1-5]\d\d\s*(,\s*[1-5]\d\d\s*)*$/.test(text)) {
    throw new Error('must be statuses from 100 to 599, separated by commas');
  }
  return text;
}

function checkSelector(text: string): string {
  try {
    parseClickSelectors(text);
  } catch (error) {
    throw new Error('must be a CSS selector', { cause: error });
  }
  return text;
}

const flag = { type: 'boolean' } as const;
const text = (maxLength: number, check?: (value: string) => string): ParameterKind =>
  check === undefined ? { type: 'text', maxLength } : { type: 'text', maxLength, check };
const words = (...allowed: string[]): ParameterKind => ({ type: 'word', words: allowed });
const integer = (min: number, max: number, unit: string): ParameterKind => ({
  type: 'integer',
  min,
  max,
  unit,
});

type Row = readonly [
  name: keyof CrawlParameters,
  kind: ParameterKind,
  fallback: string,
  meaning: string,
];

const anyToken: readonly Row[] = [
  ['format', words('html', 'json', 'md'), 'html', 'Shape of the result.'],
  ['md_readability', flag, 'false', "With format md: only the page's main content."],
  ['pretty', flag, 'false', 'With format json: indented.'],
  ['user_agent', text(1_024, checkPrintable), '', 'User-Agent sent to the target.'],
  [
    'device',
    words('desktop', 'tablet', 'mobile'),
    'desktop',
    'Sets the user agent and, in a browser, the viewport.',
  ],
  [
    'request_headers',
    text(8_192, checkHeaders),
    '',
    'Headers sent to the target, `name:value|name2:value2`; after a redirect to another origin at most `accept`, `accept-language` and `user-agent` go along.',
  ],
  [
    'set_cookies',
    text(8_192, checkPrintable),
    '',
    'Cookies sent to the host of the URL, `a=1; b=2`.',
  ],
  [
    'cookies_session',
    text(32, checkPrintable),
    '',
    'Name of a cookie jar kept between calls; expires 300 s after its last use.',
  ],
  ['get_headers', flag, 'false', "The target's headers in the result, each as `original_<name>`."],
  [
    'get_cookies',
    flag,
    'false',
    "The target's Set-Cookie in the result, as `original_set_cookie`.",
  ],
  ['country', text(2, checkCountry), '', 'Exit country; needs a proxy of the operator for it.'],
  ['scraper', words(...SCRAPER_NAMES), '', 'Structured data instead of the page.'],
  ['autoparse', flag, 'false', 'Structured data, by a scraper chosen from the page.'],
  [
    'custom_success_codes',
    text(256, checkStatuses),
    '',
    'Target statuses that count as success, `403,429`.',
  ],
  ['tor_network', flag, 'false', "Through the operator's proxy to the Tor network."],
];

const javascriptToken: readonly Row[] = [
  ['page_wait', integer(0, 60_000, 'ms'), '0', 'Wait after the page has loaded.'],
  ['ajax_wait', flag, 'false', 'Wait until the network is idle.'],
  [
    'css_click_selector',
    text(1_024, checkSelector),
    '',
    'Element that is clicked before the page is taken: the first of a list (`#more, body`) that is there; several clicks between `|`.',
  ],
  ['scroll', flag, 'false', 'Scroll the page down before it is taken.'],
  ['scroll_interval', integer(1, 60, 's'), '10', 'How long to scroll.'],
  [
    'screenshot',
    flag,
    'false',
    'A JPEG of the page; `screenshot_url` in the result, valid for one hour.',
  ],
  ['mode', words('fullpage', 'viewport'), 'fullpage', 'What the screenshot shows.'],
  ['width', integer(1, 4_096, 'px'), '', 'Width of the viewport.'],
  ['height', integer(1, 16_384, 'px'), '', 'Height of the viewport.'],
];

const toParameters = (rows: readonly Row[], javascript: boolean): Parameter[] =>
  rows.map(([name, kind, fallback, meaning]) => ({ name, kind, fallback, meaning, javascript }));

/** Every crawl parameter; validation and documentation are derived from this table. */
export const parameterTable: readonly Parameter[] = [
  ...toParameters(anyToken, false),
  ...toParameters(javascriptToken, true),
];

/**
 * Validates parameters by their API names. Undefined, an empty text and false count as absent.
 * Throws `invalid` naming the parameter and what is allowed.
 */
export function parseCrawlParameters(
  input: Readonly<Record<string, unknown>>,
  tokenType: TokenType,
): CrawlParameters {
  const parsed: Record<string, unknown> = {};
  // `cookies` is another name of `set_cookies`.
  const given = { ...input, set_cookies: input.set_cookies ?? input.cookies };
  for (const { name, kind, javascript } of parameterTable) {
    const value = (given as Readonly<Record<string, unknown>>)[name];
    if (value === undefined || value === '' || value === false) continue;
    if (javascript && tokenType === 'normal') {
      throw invalidField(name, `${name} needs the JavaScript token and a crawler made with it.`);
    }
    parsed[name] = checkValue(name, kind, value);
  }
  assertDrawable(parsed);
  return parsed;
}

/** Throws when the viewport has more pixels than a screenshot may have. */
function assertDrawable(parameters: CrawlParameters): void {
  if (parameters.screenshot !== true) return;
  const screen = requestedScreen(parameters);
  if (screenPixels(screen) <= MAX_PICTURE_PIXELS) return;
  const { width, height, scale } = screen;
  throw invalidField(
    parameters.height === undefined ? 'width' : 'height',
    `width and height: a picture of ${width} x ${height} at ${scale} pixels for one of CSS has more than ${MAX_PICTURE_PIXELS} pixels.`,
  );
}

function checkValue(name: string, kind: ParameterKind, value: unknown): unknown {
  switch (kind.type) {
    case 'boolean':
      if (typeof value === 'boolean') return value;
      throw invalidField(name, `${name} must be true or false.`);
    case 'integer':
      if (Number.isInteger(value) && Number(value) >= kind.min && Number(value) <= kind.max) {
        return value;
      }
      throw invalidField(name, `${name} must be a whole number from ${kind.min} to ${kind.max}.`);
    case 'word':
      if (typeof value === 'string' && kind.words.includes(value)) return value;
      throw invalidField(name, `${name} must be one of ${kind.words.join(', ')}.`);
    case 'text':
      return checkText(name, kind, value);
  }
}

function checkText(
  name: string,
  kind: Extract<ParameterKind, { type: 'text' }>,
  value: unknown,
): string {
  if (typeof value !== 'string') throw invalidField(name, `${name} must be text.`);
  if (value.length > kind.maxLength) {
    throw invalidField(name, `${name} must be at most ${kind.maxLength} characters.`);
  }
  try {
    return kind.check === undefined ? value : kind.check(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'is not valid';
    throw invalidField(name, `${name} ${reason}.`);
  }
}
