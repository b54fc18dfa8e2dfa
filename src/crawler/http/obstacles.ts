import type { TargetAnswer } from '../../domain/status.ts';

/** What an obstacle is recognised by. */
export interface SeenAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

type Obstacle = NonNullable<TargetAnswer['obstacle']>;

interface Sign {
  readonly obstacle: Obstacle;
  /** Whose page it is. */
  readonly from: string;
  readonly matches: (answer: SeenAnswer, text: () => string) => boolean;
}

/** The pages in front of a page are small; a large one is an article about them. */
const LARGEST_OBSTACLE = 256 * 1024;
const REFUSALS = new Set([401, 403, 405, 429, 503]);

/**
 * Each sign is one the product itself documents or cannot do without: a header of its own, or its script in a refusal. A page that
 * merely contains a captcha, as sign-up forms do, is a page. Order matters: a captcha is often part of a challenge page.
 */
const SIGNS: readonly Sign[] = [
  {
    // https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
    from: 'Cloudflare',
    obstacle: 'anti_bot_challenge',
    matches: ({ headers }) => headers.get('cf-mitigated') === 'challenge',
  },
  {
    from: 'Cloudflare',
    obstacle: 'anti_bot_challenge',
    matches: ({ status, headers }, text) =>
      (status === 403 || status === 503) &&
      headers.get('server') === 'cloudflare' &&
      /\/cdn-cgi\/challenge-platform\/|window\._cf_chl_opt/.test(text()),
  },
  {
    // https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
    from: 'AWS WAF',
    obstacle: 'anti_bot_challenge',
    matches: ({ status, headers }) =>
      status === 202 && headers.get('x-amzn-waf-action') === 'challenge',
  },
  {
    from: 'AWS WAF',
    obstacle: 'captcha',
    matches: ({ status, headers }) =>
      status === 405 && headers.get('x-amzn-waf-action') === 'captcha',
  },
  {
    from: 'Imperva',
    obstacle: 'anti_bot_challenge',
    matches: (_answer, text) =>
      /<iframe[^>]+\/_Incapsula_Resource\?[^>]*>\s*Request unsuccessful\. Incapsula incident ID/.test(
        text(),
      ),
  },
  {
    from: 'DataDome',
    obstacle: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 405) &&
      /(?:geo\.captcha-delivery\.com|ct\.captcha-delivery\.com)/.test(text()),
  },
  {
    from: 'HUMAN (PerimeterX)',
    obstacle: 'captcha',
    matches: ({ status }, text) =>
      (status === 403 || status === 429) && /id=["']px-captcha["']|window\._pxAppId/.test(text()),
  },
  {
    from: 'Akamai',
    obstacle: 'anti_bot_challenge',
    matches: ({ status }, text) =>
      (status === 403 || status === 428 || status === 429) &&
      /sec-if-cpt-container|id=["']sec-cpt-if["']/.test(text()),
  },
  {
    from: 'a captcha on a refusal',
    obstacle: 'captcha',
    matches: ({ status }, text) =>
      REFUSALS.has(status) &&
      /class=["'][^"'>]{0,100}\b(?:g-recaptcha|h-captcha|cf-turnstile)\b/.test(text()),
  },
];

/** Which obstacle an answer is instead of the page that was asked for; undefined for the page itself. */
export function recogniseObstacle(answer: SeenAnswer): Obstacle | undefined {
  let decoded: string | undefined;
  // The signs are ASCII, whatever the character set.
  const text = (): string => {
    decoded ??=
      answer.body.length > LARGEST_OBSTACLE ? '' : Buffer.from(answer.body).toString('latin1');
    return decoded;
  };
  // Only Imperva answers 200; its page is a few hundred bytes.
  if (answer.status === 200 && answer.body.length > 4_096 && !answer.headers.has('cf-mitigated')) {
    return undefined;
  }
  return SIGNS.find((sign) => sign.matches(answer, text))?.obstacle;
}
