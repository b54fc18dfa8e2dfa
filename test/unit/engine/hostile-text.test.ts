import { describe, expect, test } from 'vitest';
import { parseCallbackHeaders } from '../../../src/domain/callback-headers.ts';
import { createCookies } from '../../../src/engine/cookies.ts';
import { prepareDocument } from '../../../src/engine/extract/markdown/prepare-document.ts';
import { parseDocument } from '../../../src/engine/extract/parse-document.ts';
import { scrapers } from '../../../src/engine/extract/scrapers/scrapers.ts';
import { detectBlock } from '../../../src/engine/http/block-pages.ts';
import { nextHop } from '../../../src/engine/http/redirect.ts';
import { parseRequestHeaders } from '../../../src/engine/http/request-headers.ts';
import { parseRobots } from '../../../src/engine/politeness/robots-rules.ts';
import { parseContentEncoding } from '../../../src/net/content-decoder.ts';
import { atOnce, shownBody } from '../../support/steps.ts';

/** What a web site may send where it is not cut: 256 KiB of a page, and headers of 64 KiB. */
const PAGE = 256 * 1024;
const HEADER = 64 * 1024;
/** A reader whose time grows with the square of such a text takes minutes, one that is linear milliseconds, also on a busy machine. */
const LONGEST_MS = 3_000;

function filled(part: string, length: number, end = ''): string {
  return part.repeat(Math.ceil(length / part.length)).slice(0, length) + end;
}

/** Processor time, because the time of the clock includes what a busy machine does for others. */
function within(work: () => unknown): void {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(LONGEST_MS);
}

describe('a page does not hold up the search for block pages', () => {
  test.each([
    ['<iframe/_Incapsula_Resource?'],
    ['<iframe'],
    ['<iframe/_Incapsula_Resource?>'],
    ['<iframe />Request unsuccessful. Incapsula incident ID'],
    ['> '],
    ['class="'],
    ['class="g-recaptcha'],
    ['g-recaptcha'],
    ["class='x h-captchax "],
    ['id="px-captcha'],
    ['/cdn-cgi/challenge-platform'],
  ])('%s, again and again', (part) => {
    for (const status of [200, 403, 404, 405, 429, 503]) {
      for (const length of [4_096, PAGE]) {
        const body = Buffer.from(filled(part, length));
        const headers = new Map([['server', 'cloudflare']]);
        within(() => detectBlock({ status, headers, body }));
      }
    }
  });
});

describe('block pages are still recognised', () => {
  const incident = 'Request unsuccessful. Incapsula incident ID: 1';
  const frame = '<iframe id="main" src="/_Incapsula_Resource?CWUDNSAI=1" width="100%">';
  test.each([
    [200, `${frame}${incident}</iframe>`, 'anti_bot_challenge'],
    [403, `${frame}\n  ${incident}</iframe>`, 'anti_bot_challenge'],
    [403, `${frame}<b>${incident}</b></iframe>`, undefined],
    [200, `<p>They show "${incident}"</p>`, undefined],
    [200, `${frame}${incident}${'x'.repeat(5_000)}`, undefined],
    [403, '<div class="g-recaptcha" data-sitekey=x>', 'captcha'],
    [429, "<div id=a class='big h-captcha'>", 'captcha'],
    [403, '<div class="not-g-recaptchas">', undefined],
    [403, '<div class="a" title="g-recaptcha">', undefined],
    [403, 'g-recaptcha, then <i class="cf-turnstile">', 'captcha'],
    [404, '<div class="g-recaptcha">', undefined],
    [200, '<div class="g-recaptcha">', undefined],
    [403, "<div id='px-captcha'>", 'captcha'],
    [428, '<div id="sec-cpt-if">', 'anti_bot_challenge'],
    [405, '<script src="https://ct.captcha-delivery.com/c.js">', 'captcha'],
  ])('%i %s', (status, text, expected) => {
    expect(detectBlock({ status, headers: new Map(), body: Buffer.from(text) })).toBe(expected);
  });
});

describe('headers of a site do not hold up their reader', () => {
  test.each([
    [`text/html; charset=${filled(' ', HEADER)}"x"y`],
    [`text/html; charset${filled(' ', HEADER)}"x"y`],
    [`text/html; charset="${filled('"', HEADER)}`],
    [`text/html${filled(';', HEADER)}`],
    [filled('a', HEADER, '/b')],
    [filled('application/vnd.', HEADER, '+')],
    [`text/html; ${filled('a=b;', HEADER)}`],
  ])('a content type', (contentType) => {
    within(() => {
      const page = shownBody(Buffer.from('<p>x'), contentType);
      expect(page.contentType.length).toBeLessThan(2_500);
    });
  });

  test.each([
    [filled('ü', HEADER)],
    [`http://${filled('ü', HEADER)}/`],
    [`/${filled('../', HEADER)}`],
    [`http://x/${filled('%', HEADER)}`],
    [`http://${filled('a.', HEADER)}/`],
    [`http://${filled('9.', 250)}/`],
  ])('a redirect', (location) => {
    const url = new URL('http://site.test/');
    const hop = { url, method: 'GET', withBody: false, sameOrigin: true };
    within(() => nextHop(hop, 302, location));
  });

  test.each([
    [filled('a=b;', 4_090)],
    [`a=b; Domain=${filled('a.', 4_000)}`],
    [`a=b; Expires=${filled('1 ', 4_000)}`],
    [`a=b; Expires=${filled(' ', 4_000)}x`],
    [`a=b; Path=${filled('/', 4_000)}`],
    [filled(' ', 4_090)],
    [filled('=', 4_090)],
    [`a=${filled('"', 4_090)}`],
  ])('cookies', (cookie) => {
    const url = `http://${filled('a.', 240)}test/${filled('x/', 8_000)}`;
    within(() => {
      const cookies = createCookies();
      for (let hop = 0; hop < 10; hop += 1) cookies.receive(url, Array(60).fill(cookie));
      cookies.headerFor(url);
    });
  });

  test('content encodings', () => {
    within(() => {
      expect(() => parseContentEncoding(filled('gzip,', 60_000))).toThrow('encoded more than');
      expect(parseContentEncoding(filled('x ,', HEADER))).toEqual([]);
    });
  });
});

describe('a document does not hold up the search for its character set', () => {
  test.each([
    ['<!--'],
    ['<!-- -->'],
    ['<meta content='],
    ['<meta '],
    [`<meta content=${filled(' ', 60)}`],
    ['<meta http-equiv=content-type content="charset'],
    ['<?xml encoding '],
    ['<?xml encoding='],
    [' '],
    ['<meta ='],
    ['<meta charset="'],
  ])('%s, again and again', (part) => {
    const bytes = Buffer.from(filled(part, 10_000));
    within(() => {
      for (let page = 0; page < 200; page += 1) shownBody(bytes, 'text/html');
    });
  });
});

describe('robots.txt does not hold up a crawl, whatever it holds', () => {
  const path = `/${filled('a', 7_900)}`;
  test.each([
    [filled('*', 500_000)],
    [filled('*a', 500_000)],
    [filled(`${'*aa'.repeat(14)}b\nDisallow: /`, 500_000)],
    [filled(`*${'a'.repeat(500)}b${'a'.repeat(500)}\nDisallow: /`, 500_000)],
    [filled('*aaab\nDisallow: /', 500_000)],
    [filled(`${'a'.repeat(2_030)}b\nDisallow: /`, 500_000)],
    [filled('*aab$\nDisallow: /', 500_000)],
    [filled('%', 2_000)],
    [filled('\nUser-agent: *', 250_000) + filled('\nDisallow: /b', 250_000)],
    [filled('\n', 500_000)],
    [filled('#', 500_000)],
  ])('%.40s', (rules) => {
    const text = `User-agent: *\nDisallow: /${rules}`;
    within(() => {
      const robots = atOnce(parseRobots(text, 'QueuedCrawler'));
      // One check takes a few milliseconds at the most; a quadratic one seconds.
      for (let url = 0; url < 200; url += 1) robots.allows(new URL(`http://x${path}${url}`));
    });
  });
});

describe('pages do not hold up scrapers more than their length', () => {
  const page = (body: string) => ({
    document: parseDocument(`<!doctype html><html><head></head><body>${body}`),
    url: 'https://shop.example/',
  });
  test.each([
    ['links', Array.from({ length: 5_000 }, (_, n) => `<a href=/${n}>a</a>`).join('')],
    ['generic-extractor', filled('<img src=/x>', 60_000)],
    ['generic-extractor', filled('<table><tr><td>', 30_000)],
    ['links', `<p ${Array.from({ length: 20_000 }, (_, n) => `a${n}`).join(' ')}>`],
    ['email-extractor', filled('a@a.a.', PAGE)],
    ['email-extractor', filled('a.', PAGE, '@x')],
    ['email-extractor', filled('@', PAGE)],
    ['email-extractor', `a@${filled('a-', PAGE)}`],
  ] as const)('%s', (name, body) => {
    within(() => scrapers[name](page(body)));
  });

  test.each([
    ['<a href=/x><div>'],
    ['<a href=/x><h2>a'],
    ['<a href=/x><h2>a</h2><div>a</div></a>'],
    ['<a href=/x><object>'],
    ['<h1><div><br>'],
    ['<h1><a href=/x>#</a><div>'],
    ['<a href="http://["><div>'],
    ['<pre><br>'],
    ['<img src=/x>'],
  ])('%s, again and again, as Markdown', (part) => {
    const hostile = page(filled(part, PAGE));
    within(() => prepareDocument(hostile));
  });

  test('addresses are found as before', () => {
    const text = 'Mail a.b+c@shop.example, x@y.z.co.uk. Not logo@2x.png, a@b, @c.de or d@-e.fr';
    expect(scrapers['email-extractor'](page(text))).toEqual({
      emails: ['a.b+c@shop.example', 'x@y.z.co.uk'],
    });
  });
});

describe('texts of clients do not hold up their reader', () => {
  test.each([[' '], ['\t'], ['|'], [':'], ['a:'], ['a|'], [' :']])('%j', (part) => {
    const text = filled(part, PAGE);
    within(() => parseRequestHeaders(text));
    within(() => {
      try {
        parseCallbackHeaders(text);
      } catch {
        // Refused; how long that took is what counts.
      }
    });
  });
});
