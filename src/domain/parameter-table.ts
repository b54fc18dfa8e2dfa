import { parseClickSelectors } from './click-selectors.ts';
import { CONNECTION_HEADERS, HEADER_NAME, HEADER_VALUE, splitHeaderList } from './header-rules.ts';
import { MAX_AGE_SECONDS } from './limits.ts';

/** The type of a parameter, and its allowed values. */
export type ParameterKind =
  | { readonly type: 'boolean' }
  | { readonly type: 'integer'; readonly min: number; readonly max: number; readonly unit: string }
  | {
      readonly type: 'word';
      readonly words: readonly string[];
      /** The word that serves best in place of one that is not allowed. */
      readonly nearest?: (word: string) => string | undefined;
    }
  | {
      readonly type: 'text';
      /** In characters. */
      readonly maxLength: number;
      /** Throws an Error that says what is allowed; returns the text in its normal form. */
      readonly check?: (text: string) => string;
    };

/** The type of the values of a kind. */
export type ParameterValue<Kind extends ParameterKind> = Kind extends {
  readonly words: readonly (infer Word)[];
}
  ? Word
  : { boolean: boolean; integer: number; word: string; text: string }[Kind['type']];

/** One crawl parameter. */
export interface Parameter {
  /** The name in the API and in stored jobs. */
  readonly name: string;
  readonly kind: ParameterKind;
  /** The value that applies when it is absent; empty for none. */
  readonly fallback: string;
  /** Whether it needs a browser, and therefore the JavaScript token. */
  readonly javascript: boolean;
  /** A sentence for the documentation. */
  readonly meaning: string;
}

/** The values of `scraper`. */
export const SCRAPER_NAMES = [
  'generic-extractor',
  'email-extractor',
  'links',
  'article',
  'product',
  'metadata',
] as const;
/** A value of `scraper`. */
export type ScraperName = (typeof SCRAPER_NAMES)[number];

/** What names of other scrapers, such as `amazon-product-details`, are nearest to. */
const NEAREST: readonly (readonly [RegExp, ScraperName])[] = [
  [/serp|search|listing|results|categor/i, 'generic-extractor'],
  [/product|item|offer/i, 'product'],
  [/e-?mail|leads?\b|contact/i, 'email-extractor'],
  [/article|news|blog|post|story/i, 'article'],
  [/\blinks?\b|url/i, 'links'],
  [/meta|schema|json/i, 'metadata'],
];

function nearestScraper(name: string): ScraperName | undefined {
  return NEAREST.find(([pattern]) => pattern.test(name))?.[1];
}

function checkHeaders(text: string): string {
  for (const [name] of splitHeaderList(text)) {
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
  if (!/^\s*[1-9]\d\d\s*(,\s*[1-9]\d\d\s*)*$/.test(text)) {
    throw new Error('must be statuses from 100 to 999, separated by commas');
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

/** What `block_resources` names. */
export const RESOURCE_KINDS = [
  'images',
  'media',
  'fonts',
  'stylesheets',
  'third_party',
  'ads',
] as const;

function checkResources(text: string): string {
  const names = text.split(',').map((name) => name.trim());
  const known: readonly string[] = RESOURCE_KINDS;
  if (names.some((name) => !known.includes(name))) {
    throw new Error(`must be some of ${known.join(', ')}, separated by commas`);
  }
  return [...new Set(names)].join(',');
}

function checkLocale(text: string): string {
  try {
    const { language, region } = new Intl.Locale(text);
    return region === undefined ? language : `${language}-${region}`;
  } catch (error) {
    throw new Error('must be a language, or a language and a region, such as de-DE', {
      cause: error,
    });
  }
}

function checkTimezone(text: string): string {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone;
  } catch (error) {
    throw new Error('must be a time zone of IANA, such as Europe/Berlin', { cause: error });
  }
}

const flag = { type: 'boolean' } as const;
const text = (maxLength: number, check: (value: string) => string) =>
  ({ type: 'text', maxLength, check }) as const;
const words = <const Words extends readonly string[]>(...allowed: Words) =>
  ({ type: 'word', words: allowed }) as const;
const integer = (min: number, max: number, unit: string) =>
  ({ type: 'integer', min, max, unit }) as const;

type Row = readonly [kind: ParameterKind, fallback: string, meaning: string];

const anyToken = {
  format: [words('html', 'json', 'md'), 'html', 'Shape of the result.'],
  md_readability: [flag, 'false', "With format md: only the page's main content."],
  pretty: [flag, 'false', 'With format json: indented.'],
  user_agent: [text(1_024, checkPrintable), '', 'User-Agent sent to the target.'],
  device: [
    words('desktop', 'tablet', 'mobile'),
    'desktop',
    'Sets the user agent and, in a browser, the viewport.',
  ],
  request_headers: [
    text(8_192, checkHeaders),
    '',
    'Headers sent to the target, `name:value|name2:value2`; after a redirect to another origin at most `accept`, `accept-language` and `user-agent` go along.',
  ],
  set_cookies: [
    text(8_192, checkPrintable),
    '',
    'Cookies sent to the host of the URL, `a=1; b=2`.',
  ],
  cookies_session: [
    text(32, checkPrintable),
    '',
    'Name of a cookie jar kept between calls of the same token; expires 300 s after its last use.',
  ],
  session: [
    text(32, checkPrintable),
    '',
    'Name of a visitor: crawls of the same token with it share cookies as with `cookies_session`, and one proxy of the pool.',
  ],
  get_headers: [
    flag,
    'false',
    "The target's headers in the result, each as `original_<name>`; in headers of a reply or delivery as many as fit into 13,000 characters, in JSON and over gRPC all.",
  ],
  get_cookies: [flag, 'false', "The target's Set-Cookie in the result, as `original_set_cookie`."],
  country: [text(2, checkCountry), '', 'Exit country; needs a proxy of the operator for it.'],
  proxy: [
    text(32, checkPrintable),
    '',
    "Name of a pool of proxies, the account's or the operator's, in place of the crawler's setting; `direct` for none.",
  ],
  scraper: [
    { ...words(...SCRAPER_NAMES), nearest: nearestScraper },
    '',
    'Structured data instead of the page.',
  ],
  autoparse: [flag, 'false', 'Structured data, by a scraper chosen from the page.'],
  custom_success_codes: [
    text(256, checkStatuses),
    '',
    'Target statuses that count as success, `403,429`.',
  ],
  max_age: [
    integer(1, MAX_AGE_SECONDS, 's'),
    '',
    'A stored page of this URL, with the same token and parameters, is the result if it is not older: nothing is requested then. The result has `crawled_at`. POST and PUT, `scraper`, `autoparse`, `screenshot`, `session` and `cookies_session` request the page always.',
  ],
  tor_network: [flag, 'false', "Through the operator's proxy to the Tor network."],
} as const satisfies Record<string, Row>;

const javascriptToken = {
  page_wait: [integer(0, 60_000, 'ms'), '0', 'Wait after the page has loaded.'],
  ajax_wait: [flag, 'false', 'Wait until the network is idle.'],
  css_click_selector: [
    text(1_024, checkSelector),
    '',
    'Element to click before the page is taken. Of a list (`#more, .more`) the first that is there. `|` separates several clicks. One that ends in `?` may be missing (`#accept?|#more`).',
  ],
  wait_for_selector: [
    text(1_024, checkSelector),
    '',
    'Element to wait for after the page has loaded, at most 30 s; with `?` at the end it may stay away.',
  ],
  block_resources: [
    text(256, checkResources),
    '',
    'What the page does not load: some of images, media, fonts, stylesheets, third_party, ads.',
  ],
  locale: [
    text(35, checkLocale),
    '',
    'Language and region of the page, `de-DE`; those of `country` when absent.',
  ],
  timezone: [
    text(64, checkTimezone),
    '',
    'Time zone of the page, `Europe/Berlin`; that of `country` when absent.',
  ],
  js_snippet: [
    { type: 'text', maxLength: 8_192 },
    '',
    'Script that is run in the page once it has loaded, at most 10 s; where the operator allows it.',
  ],
  include_frames: [flag, 'false', "Puts the content of frames of the page's own origin into it."],
  pdf: [flag, 'false', 'The page printed as a PDF instead of its HTML.'],
  scroll: [flag, 'false', 'Scroll the page down before it is taken.'],
  scroll_interval: [
    integer(1, 60, 's'),
    '10',
    'How long to scroll; it ends earlier at the end of a page that does not grow.',
  ],
  screenshot: [
    flag,
    'false',
    'A JPEG of the page; `screenshot_url` in the result, valid for one hour.',
  ],
  mode: [words('fullpage', 'viewport'), 'fullpage', 'What the screenshot shows.'],
  width: [integer(1, 4_096, 'px'), '', 'Width of the viewport.'],
  height: [integer(1, 16_384, 'px'), '', 'Height of the viewport.'],
} as const satisfies Record<string, Row>;

/** The rows of all parameters by name, with the types of their values. */
export type ParameterRows = typeof anyToken & typeof javascriptToken;

const toParameters = (rows: Readonly<Record<string, Row>>, javascript: boolean): Parameter[] =>
  Object.entries(rows).map(([name, [kind, fallback, meaning]]) => ({
    name,
    kind,
    fallback,
    meaning,
    javascript,
  }));

/**
 * Every crawl parameter. Their types (`CrawlParameters`), their validation and their documentation
 * are derived from this table.
 */
export const parameterTable: readonly Parameter[] = [
  ...toParameters(anyToken, false),
  ...toParameters(javascriptToken, true),
];
