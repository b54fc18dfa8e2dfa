import type { TargetAnswer } from '../../domain/status.ts';

/** The parts of a response that a block page is recognised by. */
export interface ResponseSignals {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

type Block = NonNullable<TargetAnswer['block']>;

interface Signature {
  readonly block: Block;
  /** The product that serves the page. */
  readonly product: string;
  readonly matches: (response: ResponseSignals, text: () => string) => boolean;
}

/** Block pages are small; a large page that mentions one is an article about it. */
const MAX_BLOCK_PAGE_BYTES = 256 * 1024;
/** Imperva's page has a few hundred bytes, whatever its status. */
const MAX_IMPERVA_BYTES = 4_096;
/** Characters before a literal text that are searched for its tag. */
const WINDOW_CHARACTERS = 1_000;
const IMPERVA_FRAME = '/_Incapsula_Resource?';
const IMPERVA_TEXT = 'Request unsuccessful. Incapsula incident ID';
const CAPTCHA_CLASSES = ['g-recaptcha', 'h-captcha', 'cf-turnstile'];
const REFUSALS = new Set([401, 403, 405, 429, 503]);

/**
 * Each signature is searched for in time linear to the page: first its literal text, then a bounded
 * window around it. With a regular expression that backtracks, a page could stop the process.
 *
 * Each signature is one that the product documents or cannot do without: a header of its own, or
 * its script in a refusal. A page that merely contains a captcha, such as a sign-up form, is not a
 * block page. The order matters, because a challenge page often contains a captcha.
 */
const SIGNATURES: readonly Signature[] = [
  {
    // https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    product: 'Cloudflare',
    block: 'anti_bot_challenge',
    matches: ({ headers }) => headers.get('cf-mitigated') === 'challenge',
  },
  {
    product: 'Cloudflare',
    block: 'anti_bot_challenge',
    matches: ({ status, headers }, text) =>
      (status === 403 || status === 503) &&
      headers.get('server') === 'cloudflare' &&
      includesAny(text(), '/cdn-cgi/challenge-platform/', 'window._cf_chl_opt'),
  },
  {
    // https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
    product: 'AWS WAF',
    block: 'anti_bot_challenge',
    matches: ({ status, headers }) =>
      status === 202 && headers.get('x-amzn-waf-action') === 'challenge',
  },
  {
    product: 'AWS WAF',
    block: 'captcha',
    matches: ({ status, headers }) =>
      status === 405 && headers.get('x-amzn-waf-action') === 'captcha',
  },
  {
    product: 'Imperva',
    block: 'anti_bot_challenge',
    matches: ({ body }, text) => body.length <= MAX_IMPERVA_BYTES && isImpervaPage(text()),
  },
  {
    product: 'DataDome',
    block: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 405) &&
      includesAny(text(), 'geo.captcha-delivery.com', 'ct.captcha-delivery.com'),
  },
  {
    product: 'HUMAN (PerimeterX)',
    block: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 429) &&
      includesAny(text(), 'id="px-captcha"', "id='px-captcha'", 'window._pxAppId'),
  },
  {
    product: 'Akamai',
    block: 'anti_bot_challenge',
    matches: ({ status }, text) =>
      (status === 403 || status === 428 || status === 429) &&
      includesAny(text(), 'sec-if-cpt-container', 'id="sec-cpt-if"', "id='sec-cpt-if'"),
  },
  {
    product: 'a captcha on a refusal',
    block: 'captcha',
    matches: ({ status }, text) =>
      REFUSALS.has(status) && CAPTCHA_CLASSES.some((name) => includesClass(text(), name)),
  },
];

/** The kind of block page that a response is; undefined when it is the requested page itself. */
export function detectBlock(response: ResponseSignals): Block | undefined {
  let decoded: string | undefined;
  // The signatures are ASCII, whatever the character set of the page.
  const text = (): string => {
    decoded ??=
      response.body.length > MAX_BLOCK_PAGE_BYTES
        ? ''
        : Buffer.from(response.body).toString('latin1');
    return decoded;
  };
  // Only Imperva serves its block page with status 200.
  if (
    response.status === 200 &&
    response.body.length > MAX_IMPERVA_BYTES &&
    !response.headers.has('cf-mitigated')
  ) {
    return undefined;
  }
  return SIGNATURES.find((signature) => signature.matches(response, text))?.block;
}

function includesAny(text: string, ...literals: readonly string[]): boolean {
  return literals.some((literal) => text.includes(literal));
}

/** Whether Imperva's incident text directly follows one of its `<iframe>` tags. */
function isImpervaPage(text: string): boolean {
  const at = text.indexOf(IMPERVA_TEXT);
  if (at < 0) return false;
  const before = text.slice(Math.max(0, at - WINDOW_CHARACTERS), at).trimEnd();
  if (!before.endsWith('>')) return false;
  const tag = before.slice(before.lastIndexOf('<'));
  return tag.startsWith('<iframe') && tag.includes(IMPERVA_FRAME);
}

/**
 * Whether an element has the class: each place that names it is checked for being inside a `class`
 * attribute.
 */
function includesClass(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length)) {
    const before = text.slice(Math.max(0, at - 110), at);
    const quote = Math.max(before.lastIndexOf('"'), before.lastIndexOf("'"));
    const isWhole = !isWordCharacter(text[at - 1]) && !isWordCharacter(text[at + name.length]);
    const isInClass = quote >= 0 && before.slice(0, quote).endsWith('class=');
    if (isWhole && isInClass && !before.includes('>', quote)) return true;
  }
  return false;
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character);
}
