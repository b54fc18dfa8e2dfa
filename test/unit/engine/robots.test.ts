import { expect, test } from 'vitest';
import { createRobots } from '../../../src/engine/politeness/robots.ts';
import { createTestClock } from '../../support/test-clock.ts';

const { signal } = new AbortController();
const LIMIT = 512 * 1024;

/** Checks URLs of sites that have this robots.txt, cut where the client cuts it. */
function startRobots(text: string | Buffer) {
  const asked: string[] = [];
  const robots = createRobots({
    clock: createTestClock(),
    fetch: async (url, _proxy, maxBodyBytes) => {
      asked.push(url.host);
      const body = Buffer.from(text as string).subarray(0, maxBodyBytes);
      return { status: 200, headers: [], body, answerMs: 0 };
    },
  });
  return {
    asked,
    async isAllowed(url: string) {
      const route = { proxy: undefined, name: '' };
      return (await robots.check(new URL(url), route, signal)).allowed;
    },
  };
}

test.each([1, 5, 'private/'.length])(
  'a rule of which %i characters are cut off is ignored',
  async (missing) => {
    const head = 'User-agent: *\nDisallow: /hidden\n';
    const rule = 'Disallow: /private/';
    const filler = `${'#'.repeat(LIMIT - head.length - rule.length + missing - 1)}\n`;
    const { isAllowed } = startRobots(`${head}${filler}${rule}\nAllow: /\n`);
    expect(await isAllowed('http://a.example/hidden')).toBe(false);
    expect(await isAllowed('http://a.example/public')).toBe(true);
    expect(await isAllowed('http://a.example/p')).toBe(true);
  },
);

test('a whole file that is as long as the limit has all of its rules', async () => {
  const head = 'User-agent: *\n';
  const rule = 'Disallow: /private/\n';
  const filler = `${'#'.repeat(LIMIT - head.length - rule.length - 1)}\n`;
  const { isAllowed } = startRobots(head + filler + rule);
  expect(await isAllowed('http://a.example/private/1')).toBe(false);
});

test.each([
  ['UTF-8', 'utf8'],
  ['UTF-16', 'utf16le'],
  ['UTF-16, big-endian', 'utf16be'],
] as const)('a file in %s with a byte order mark is read', async (_name, encoding) => {
  const text = '\ufeffUser-agent: *\nDisallow: /private/\n';
  const bytes = Buffer.from(text, encoding === 'utf8' ? 'utf8' : 'utf16le');
  const { isAllowed } = startRobots(encoding === 'utf16be' ? bytes.swap16() : bytes);
  expect(await isAllowed('http://a.example/private/1')).toBe(false);
  expect(await isAllowed('http://a.example/public')).toBe(true);
});

test('all rules of the first 500 KiB count', async () => {
  const rules = Array.from({ length: 24_000 }, (_, n) => `Disallow: /${n}/\n`).join('');
  expect(rules.length).toBeLessThan(500 * 1024);
  const { isAllowed } = startRobots(`User-agent: *\n${rules}`);
  expect(await isAllowed('http://a.example/23999/')).toBe(false);
  expect(await isAllowed('http://a.example/24000/')).toBe(true);
});

test('long files of many sites are not all remembered, short ones are', async () => {
  const askedTwice = async (text: string) => {
    const { asked, isAllowed } = startRobots(text);
    for (let n = 0; n < 300; n += 1) await isAllowed(`http://a${n}.example/`);
    await isAllowed('http://a299.example/');
    await isAllowed('http://a0.example/');
    return asked.filter((host, at) => asked.indexOf(host) !== at);
  };
  const long = Array.from({ length: 5_000 }, (_, n) => `Disallow: /${'x'.repeat(70)}${n}\n`);
  expect(await askedTwice(`User-agent: *\n${long.join('')}`)).toEqual(['a0.example']);
  expect(await askedTwice('User-agent: *\nDisallow: /a\n')).toEqual([]);
});

test.each(['proxy_failed', 'proxy_refused'] as const)(
  'a file that a proxy has not fetched (%s) is fetched again for the next URL',
  async (failure) => {
    const proxies = [failure, { status: 404, headers: [], body: new Uint8Array(), answerMs: 0 }];
    const robots = createRobots({
      clock: createTestClock(),
      fetch: async () => proxies.shift() ?? 'connection_failed',
    });
    const check = () =>
      robots.check(new URL('http://a.example/'), { proxy: 'http://p', name: 'p' }, signal);
    expect(await check()).toMatchObject({ allowed: false, failure });
    expect(await check()).toMatchObject({ allowed: true });
  },
);

test.each(['proxy_failed', 'proxy_refused'] as const)(
  'a proxy has no %s because another one has not fetched the file',
  async (failure) => {
    const asked: (string | undefined)[] = [];
    const robots = createRobots({
      clock: createTestClock(),
      fetch: async (_url, proxy) => {
        asked.push(proxy);
        await Promise.resolve();
        return proxy === 'http://bad'
          ? failure
          : { status: 404, headers: [], body: new Uint8Array(), answerMs: 0 };
      },
    });
    const check = (proxy: string) =>
      robots.check(new URL('http://a.example/'), { proxy, name: 'p' }, signal);
    const verdicts = await Promise.all(['http://bad', 'http://good', 'http://bad'].map(check));
    expect(verdicts).toMatchObject([{ failure }, { allowed: true }, { failure }]);
    expect(asked).toEqual(['http://bad', 'http://good']);
  },
);
