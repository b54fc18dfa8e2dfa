import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mergeCookies, type SessionCookie } from '../../../src/domain/session-cookies.ts';
import type { CookieSession, Page } from '../../../src/engine/engine.ts';
import { packagedChromeMajor, userAgents } from '../../../src/engine/http/user-agents.ts';
import { eventually } from '../../support/eventually.ts';
import { startHttpEngine, type TestEngine, textOf } from '../../support/http-engine.ts';
import { startProxy } from '../../support/proxy.ts';
import { pageHtml, type Site, startSite } from '../../support/site.ts';
import { createTestClock } from '../../support/test-clock.ts';

interface Echo {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const clock = createTestClock();
let stack: AsyncDisposableStack;
let site: Site;
let engine: TestEngine;

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  site = stack.use(
    await startSite({
      routes: {
        '/latin1-location': (_request, response) => {
          response.writeHead(302, { location: '/page/\xe9' }).end();
        },
        '/utf8-location': (_request, response) => {
          response.writeHead(302, { location: Buffer.from('/page/é').toString('latin1') }).end();
        },
        '/cookie-wall': (request, response) => {
          const passed = request.headers.cookie?.includes('seen=1') === true;
          response.writeHead(passed ? 200 : 302, {
            'set-cookie': 'seen=1; Path=/',
            ...(passed ? {} : { location: '/cookie-wall' }),
          });
          response.end(passed ? 'behind the wall' : '');
        },
        '/challenge': (_request, response) => {
          response.writeHead(403, { 'cf-mitigated': 'challenge', 'content-type': 'text/html' });
          response.end('<title>Just a moment...</title>');
        },
        '/captcha': (_request, response) => {
          response.writeHead(403, { 'content-type': 'text/html' });
          response.end('<form><div class="g-recaptcha" data-sitekey="x"></div></form>');
        },
        '/sign-up': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/html' });
          response.end('<form><div class="g-recaptcha" data-sitekey="x"></div></form>');
        },
        '/empty-post': (_request, response) => void response.writeHead(200).end(),
      },
    }),
  );
  engine = stack.use(startHttpEngine({ allow: `127.0.0.1,a.test:${site.port}`, clock }));
});

afterEach(async () => {
  expect(engine.errors).toEqual([]);
  await stack.disposeAsync();
});

function echoOf(page: Page): Echo {
  return JSON.parse(textOf(page)) as Echo;
}

describe('pages', () => {
  test('a page as it is', async () => {
    const url = `${site.url}/page/7#part`;
    const page = await engine.crawl(url);
    expect(page).toMatchObject({
      cbStatus: 200,
      originalStatus: 200,
      url,
      contentType: 'text/html; charset=utf-8',
      isText: true,
    });
    expect(page.failure).toBeUndefined();
    expect(textOf(page)).toBe(pageHtml('7', 0));
    expect(page.headers).toContainEqual(['content-type', 'text/html; charset=utf-8']);
  });

  test.each([
    ['/status/404', 200, 404, undefined],
    ['/status/410', 200, 410, undefined],
    ['/status/451', 200, 451, undefined],
    ['/status/403', 200, 403, undefined],
    ['/status/204', 200, 204, undefined],
    ['/status/500', 500, 500, { reason: 'target_error', transient: true }],
    [
      '/status/503?retry-after=7',
      503,
      503,
      { reason: 'target_unavailable', transient: true, retryAfterMs: 7_000 },
    ],
    ['/status/429', 429, 429, { reason: 'too_many_requests', transient: true }],
    ['/empty', 520, 200, { reason: 'empty_body', transient: true }],
    ['/challenge', 525, 403, { reason: 'anti_bot_challenge', transient: true }],
    ['/captcha', 503, 403, { reason: 'captcha', transient: true }],
    ['/sign-up', 200, 200, undefined],
  ])('%s is %i', async (path, cbStatus, originalStatus, failure) => {
    const page = await engine.crawl(site.url + path);
    expect([page.cbStatus, page.originalStatus, page.failure]).toEqual([
      cbStatus,
      originalStatus,
      failure,
    ]);
  });

  test('custom success codes', async () => {
    const page = await engine.crawl(`${site.url}/status/503`, { custom_success_codes: '429,503' });
    expect([page.cbStatus, page.originalStatus, page.failure]).toEqual([200, 503, undefined]);
    expect(textOf(page)).toContain('status 503');
  });

  test('an invalid URL', async () => {
    expect(await engine.crawl('nonsense')).toMatchObject({
      cbStatus: 523,
      originalStatus: 0,
      url: 'nonsense',
      failure: { reason: 'invalid_url', transient: false },
    });
  });

  test('an abort rejects with its reason and frees the connection', async () => {
    const controller = new AbortController();
    const crawl = engine.crawl(`${site.url}/hang`, {}, { signal: controller.signal });
    const outcome = expect(crawl).rejects.toThrow('enough');
    await eventually(() => expect(site.concurrent).toBe(1));
    controller.abort(new Error('enough'));
    await outcome;
    await eventually(() => expect(site.concurrent).toBe(0));
  });
});

describe('requests', () => {
  const agents = userAgents('named', packagedChromeMajor());

  test('look like a browser that says who it is; device and user_agent choose', async () => {
    const plain = echoOf(await engine.crawl(`${site.url}/echo`));
    expect(plain.headers).toMatchObject({
      'user-agent': agents.desktop,
      'accept-encoding': 'gzip, deflate, br, zstd',
    });
    const mobile = echoOf(await engine.crawl(`${site.url}/echo`, { device: 'mobile' }));
    expect(mobile.headers['user-agent']).toBe(agents.mobile);
    const own = echoOf(
      await engine.crawl(`${site.url}/echo`, { user_agent: 'me/1', device: 'tablet' }),
    );
    expect(own.headers['user-agent']).toBe('me/1');
  });

  test('carry request_headers, but not those of the connection', async () => {
    const { headers } = echoOf(
      await engine.crawl(`${site.url}/echo`, {
        request_headers:
          'X-One: 1|accept:text/x|host:evil|transfer-encoding:chunked|content-length:9|bad name:x|nothing|cookie:k=v',
        set_cookies: 'a=1; b=2',
      }),
    );
    expect(headers).toMatchObject({ 'x-one': '1', accept: 'text/x', host: site.host });
    expect(headers['cookie']).toBe('k=v; a=1; b=2');
    expect(headers).not.toHaveProperty('transfer-encoding');
    expect(headers).not.toHaveProperty('content-length');
  });

  test.each(['POST', 'PUT'] as const)('%s sends the body with its type', async (method) => {
    const body = Buffer.from('{"a":1}');
    const page = await engine.crawl(
      `${site.url}/echo`,
      {},
      {
        method,
        body,
        contentType: 'application/json',
      },
    );
    expect(echoOf(page)).toMatchObject({
      method,
      body: '{"a":1}',
      headers: { 'content-type': 'application/json' },
    });
  });

  test('a POST answered with nothing is an answer', async () => {
    const page = await engine.crawl(
      `${site.url}/empty-post`,
      {},
      { method: 'POST', body: Buffer.from('x') },
    );
    expect(page.cbStatus).toBe(200);
  });
});

describe('redirects', () => {
  test('are followed, and the page says where it is', async () => {
    const page = await engine.crawl(`${site.url}/redirect/3#part`);
    expect([page.cbStatus, page.originalStatus, page.url]).toEqual([
      200,
      200,
      `${site.url}/page/0#part`,
    ]);
  });

  test('twenty at most', async () => {
    expect((await engine.crawl(`${site.url}/redirect/20`)).cbStatus).toBe(200);
    expect(await engine.crawl(`${site.url}/redirect/21`)).toMatchObject({
      cbStatus: 523,
      originalStatus: 302,
      failure: { reason: 'too_many_redirects', transient: false },
    });
  });

  test('a loop is noticed at once; the same address with a new cookie is not a loop', async () => {
    expect(await engine.crawl(`${site.url}/loop`)).toMatchObject({
      cbStatus: 523,
      failure: { reason: 'redirect_loop' },
    });
    expect(site.hits('/loop')).toBe(1);
    expect(textOf(await engine.crawl(`${site.url}/cookie-wall`))).toBe('behind the wall');
  });

  test.each([
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'POST', 'GET', ''],
    [307, 'POST', 'POST', 'a=1'],
    [308, 'POST', 'POST', 'a=1'],
    [301, 'PUT', 'PUT', 'a=1'],
    [302, 'PUT', 'PUT', 'a=1'],
    [303, 'PUT', 'GET', ''],
    [302, 'GET', 'GET', ''],
  ] as const)('%i turns %s into %s', async (status, method, then, body) => {
    const page = await engine.crawl(
      `${site.url}/redirect-to?status=${status}&url=/echo`,
      {},
      { method, body: method === 'GET' ? undefined : Buffer.from('a=1') },
    );
    expect(echoOf(page)).toMatchObject({ method: then, body });
    expect('content-type' in echoOf(page).headers).toBe(body !== '');
  });

  test('to a location in UTF-8', async () => {
    const utf8 = await engine.crawl(`${site.url}/utf8-location`);
    expect(utf8.url).toBe(`${site.url}/page/%C3%A9`);
  });

  test('to a location in another character set, whose bytes are sent as they came', async () => {
    const { url } = await engine.crawl(`${site.url}/latin1-location`);
    expect(url).toBe(`${site.url}/page/%E9`);
  });

  test.each([
    ['http://10.0.0.1/'],
    ['http://169.254.169.254/latest/meta-data/'],
    ['http://[::1]:22/'],
    ['http://0x7f.1:22/'],
    ['//192.168.0.1/'],
  ])('into %s are refused', async (to) => {
    const strict = stack.use(startHttpEngine({ allow: site.host }));
    const url = `${site.url}/hostile/private-redirect?to=${encodeURIComponent(to)}`;
    expect(await strict.crawl(url)).toMatchObject({
      cbStatus: 523,
      failure: { reason: 'address_not_allowed', transient: false },
    });
  });

  test('to another origin take nothing of the client along but what describes a reader', async () => {
    await using other = await startSite();
    const wide = stack.use(startHttpEngine({ allow: '127.0.0.1' }));
    const parameters = {
      request_headers:
        'authorization:Bearer x|cookie:k=v|x-api-key:1|proxy-token:2|accept:text/x|accept-language:de',
      set_cookies: 'a=1',
      user_agent: 'Own/1.0',
    };
    const via = `${site.url}/redirect-to?url=`;
    // A name, another port of the same host, and back again: what has left does not return to its owner.
    const back = `${other.url}/redirect-to?url=${encodeURIComponent(`${site.url}/echo`)}`;
    const named = `http://a.test:${site.port}/echo`;
    for (const to of [named, `${other.url}/echo`, back]) {
      const { headers } = echoOf(await wide.crawl(via + encodeURIComponent(to), parameters));
      expect(headers).toMatchObject({
        accept: 'text/x',
        'accept-language': 'de',
        'user-agent': 'Own/1.0',
      });
      for (const name of ['authorization', 'x-api-key', 'proxy-token']) {
        expect(headers, to).not.toHaveProperty(name);
      }
      // The cookie given is for the origin that was named; the session with it continues where that
      // origin is reached again.
      expect(headers['cookie']).toBe(to === back ? 'a=1' : undefined);
    }
    const same = await wide.crawl(`${via}%2Fecho`, parameters);
    expect(echoOf(same).headers).toMatchObject({ 'x-api-key': '1', cookie: 'k=v; a=1' });
  });

  test.each([
    ['file:///etc/passwd'],
    ['data:text/html,x'],
    ['chrome://version/'],
    ['javascript:alert(1)'],
    ['mailto:a@b'],
    ['http://'],
    [`/${'x'.repeat(20_000)}`],
    [`http://${'a'.repeat(254)}/`],
  ])('to %.30s end the crawl for good', async (to) => {
    await using leading = await startSite({
      routes: { '/': (_request, response) => response.writeHead(302, { location: to }).end() },
    });
    const wide = stack.use(startHttpEngine({ allow: '127.0.0.1' }));
    expect(await wide.crawl(leading.url)).toMatchObject({
      cbStatus: 523,
      originalStatus: 302,
      failure: { reason: 'invalid_redirect', transient: false },
    });
  });
});

describe('cookies', () => {
  test('set on the way are sent on', async () => {
    const page = await engine.crawl(`${site.url}/cookies/set?a=1&b=2&to=/echo`);
    expect(echoOf(page).headers['cookie']).toBe('a=1; b=2');
  });

  test('do not outlive a crawl without a session', async () => {
    await engine.crawl(`${site.url}/cookies/set?a=1`);
    expect(echoOf(await engine.crawl(`${site.url}/echo`)).headers).not.toHaveProperty('cookie');
  });

  test('of a session are sent and changed as the site says; given ones stay with their origin', async () => {
    await using other = await startSite();
    const wide = stack.use(startHttpEngine({ allow: '127.0.0.1' }));
    let cookies: readonly SessionCookie[] = [];
    const session: CookieSession = {
      read: async () => cookies,
      change(changes) {
        cookies = mergeCookies(cookies, [changes], new Date());
      },
    };
    const cookieAt = async (url: string) =>
      echoOf(await wide.crawl(`${url}/echo`, {}, { session })).headers['cookie'];
    const given = { set_cookies: 'own=1' };
    await wide.crawl(`${site.url}/cookies/set?a=1&b=2`, given, { session });
    // As it is stored.
    cookies = JSON.parse(JSON.stringify(cookies));
    expect(cookies.map(({ name }) => name)).toEqual(['own', 'a', 'b']);
    expect(await cookieAt(site.url)).toBe('own=1; a=1; b=2');
    expect(await cookieAt(other.url)).toBe('a=1; b=2');
    const removing = await startSite({
      routes: {
        '/': (_request, response) =>
          response
            .writeHead(200, {
              'set-cookie': ['a=; Max-Age=0; Path=/', 'c=3; Path=/; Max-Age=9999'],
            })
            .end('<p>x'),
      },
    });
    await using _closing = removing;
    await wide.crawl(removing.url, {}, { session });
    expect(await cookieAt(other.url)).toBe('b=2; c=3');
  });

  test('stay within what servers take', async () => {
    const { headers } = echoOf(await engine.crawl(`${site.url}/hostile/cookie-flood`));
    expect(headers['cookie']?.length).toBeGreaterThan(5_000);
    expect(headers['cookie']?.length).toBeLessThanOrEqual(8_192);
  });
});

describe('proxies', () => {
  test('are asked for the target, that of Tor alone for what only Tor knows', async () => {
    await using german = await startProxy({ target: site.host });
    await using tor = await startProxy({ target: site.host });
    const away = stack.use(startHttpEngine({ allow: `shop.test:80`, torProxy: tor.url }));
    const byGerman = { proxy: german.url };
    expect((await away.crawl('http://shop.test/page/1', {}, byGerman)).cbStatus).toBe(200);
    const onion = `http://${'a'.repeat(56)}.onion/page/1`;
    expect((await away.crawl(onion, {}, { proxy: tor.url })).cbStatus).toBe(200);
    expect([german.asked, tor.asked]).toEqual([['127.0.0.1:80'], [`${'a'.repeat(56)}.onion:80`]]);
    // Another proxy is not asked for what only Tor knows.
    expect(await away.crawl(onion, {}, byGerman)).toMatchObject({
      failure: { reason: 'address_not_allowed' },
    });
    expect(german.asked).toHaveLength(1);
  });
});
