import type { TargetAnswer } from '../../domain/status.ts';

/** What an block is recognised by. */
export interface AnswerSignals {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

type Block = NonNullable<TargetAnswer['block']>;

interface Signature {
  readonly block: Block;
  /** Whose page it is. */
  readonly from: string;
  readonly matches: (answer: AnswerSignals, text: () => string) => boolean;
}

/** The pages in front of a page are small; a large one is an article about them. */
const LARGEST_BLOCK_PAGE = 256 * 1024;
/** Imperva's page is a few hundred bytes, whatever its status. */
const LARGEST_IMPERVA = 4_096;
/** Longest part of a tag that is looked at around a literal. */
const WINDOW = 1_000;
const IMPERVA_FRAME = '/_Incapsula_Resource?';
const IMPERVA_TEXT = 'Request unsuccessful. Incapsula incident ID';
const CAPTCHA_CLASSES = ['g-recaptcha', 'h-captcha', 'cf-turnstile'];
const REFUSALS = new Set([401, 403, 405, 429, 503]);

/**
 * Each signature is searched for in time linear to the page: first its literal text, then a bounded
 * window around it. A regular expression that can backtrack over a page would let the page stop its
 * reader.
 *
 * Each signature is one the product itself documents or cannot do without: a header of its own, or
 * its script in a refusal. A page that merely contains a captcha, as sign-up forms do, is a page.
 * Order matters: a captcha is often part of a challenge page.
 */
const SIGNATURES: readonly Signature[] = [
  {
    // https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    from: 'Cloudflare',
    block: 'anti_bot_challenge',
    matches: ({ headers }) => headers.get('cf-mitigated') === 'challenge',
  },
  {
    from: 'Cloudflare',
    block: 'anti_bot_challenge',
    matches: ({ status, headers }, text) =>
      (status === 403 || status === 503) &&
      headers.get('server') === 'cloudflare' &&
      holdsAny(text(), '/cdn-cgi/challenge-platform/', 'window._cf_chl_opt'),
  },
  {
    // https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
    from: 'AWS WAF',
    block: 'anti_bot_challenge',
    matches: ({ status, headers }) =>
      status === 202 && headers.get('x-amzn-waf-action') === 'challenge',
  },
  {
    from: 'AWS WAF',
    block: 'captcha',
    matches: ({ status, headers }) =>
      status === 405 && headers.get('x-amzn-waf-action') === 'captcha',
  },
  {
    from: 'Imperva',
    block: 'anti_bot_challenge',
    matches: ({ body }, text) => body.length <= LARGEST_IMPERVA && isImpervaPage(text()),
  },
  {
    from: 'DataDome',
    block: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 405) &&
      holdsAny(text(), 'geo.captcha-delivery.com', 'ct.captcha-delivery.com'),
  },
  {
    from: 'HUMAN (PerimeterX)',
    block: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 429) &&
      holdsAny(text(), 'id="px-captcha"', "id='px-captcha'", 'window._pxAppId'),
  },
  {
    from: 'Akamai',
    block: 'anti_bot_challenge',
    matches: ({ status }, text) =>
      (status === 403 || status === 428 || status === 429) &&
      holdsAny(text(), 'sec-if-cpt-container', 'id="sec-cpt-if"', "id='sec-cpt-if'"),
  },
  {
    from: 'a captcha on a refusal',
    block: 'captcha',
    matches: ({ status }, text) =>
      REFUSALS.has(status) && CAPTCHA_CLASSES.some((name) => holdsClass(text(), name)),
  },
];

/**
 * Which block an answer is instead of the page that was asked for; undefined for the page itself.
 */
export function detectBlock(answer: AnswerSignals): Block | undefined {
  let decoded: string | undefined;
  // The signs are ASCII, whatever the character set.
  const text = (): string => {
    decoded ??=
      answer.body.length > LARGEST_BLOCK_PAGE ? '' : Buffer.from(answer.body).toString('latin1');
    return decoded;
  };
  // Only Imperva answers 200.
  if (
    answer.status === 200 &&
    answer.body.length > LARGEST_IMPERVA &&
    !answer.headers.has('cf-mitigated')
  ) {
    return undefined;
  }
  return SIGNATURES.find((signature) => signature.matches(answer, text))?.block;
}

function holdsAny(text: string, ...literals: readonly string[]): boolean {
  return literals.some((literal) => text.includes(literal));
}

/** Whether the incident's text directly follows an `<iframe>` of Imperva's own. */
function isImpervaPage(text: string): boolean {
  const at = text.indexOf(IMPERVA_TEXT);
  if (at < 0) return false;
  const before = text.slice(Math.max(0, at - WINDOW), at).trimEnd();
  if (!before.endsWith('>')) return false;
  const tag = before.slice(before.lastIndexOf('<'));
  return tag.startsWith('<iframe') && tag.includes(IMPERVA_FRAME);
}

/**
 * Whether an element has the class, by the nearest attribute in front of each place that names it.
 */
function holdsClass(text: string, name: string): boolean {
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
