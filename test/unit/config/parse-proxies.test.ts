import { expect, test } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { parseProxies } from '../../../src/config/parse-proxies.ts';
import { findPools, proxyUrl } from '../../../src/domain/proxy-pools.ts';

const SECRET = 'sesame-seed';

test('a country, another name, a list and a gateway are pools', () => {
  const pools = parseProxies(
    JSON.stringify({
      DE: 'http://u:p@de.proxy:1',
      tor: 'socks5://127.0.0.1:9050',
      '*': 'direct',
      fast: ['http://a.proxy:1', 'https://b.proxy', 'socks5://u:p@[::1]:1080', 'http://a.proxy:1'],
      home: {
        gateway: 'http://u-{session}-cc-{country}:p@gate.proxy:8000',
        sessions: 3,
        countries: ['DE', 'FR'],
      },
    }),
  );
  expect(pools.map(({ name, countries, proxies }) => [name, countries, proxies.length])).toEqual([
    ['DE', ['DE'], 1],
    ['tor', [], 1],
    ['*', ['*'], 1],
    ['fast', [], 3],
    ['home', ['DE', 'FR'], 3],
  ]);
  const [home] = pools.slice(-1);
  const urls = home?.proxies.map((proxy) => proxyUrl(home, proxy, 'FR')) ?? [];
  expect(new Set(urls).size).toBe(3);
  for (const url of urls)
    expect(url).toMatch(/^http:\/\/u-[0-9a-f]{16}-cc-fr:p@gate\.proxy:8000\/$/);
  expect(home?.proxies[0]?.label).toBe('gate.proxy:8000 session 1');
  const names = (wish: Parameters<typeof findPools>[1]) =>
    findPools(pools, wish)?.map(({ name }) => name);
  expect(names({})).toEqual([]);
  expect(names({ country: 'DE' })).toEqual(['DE', 'home']);
  expect(names({ country: 'ES' })).toEqual(['*']);
  expect(names({ proxy: 'fast' })).toEqual(['fast']);
  expect(names({ proxy: 'home', country: 'FR' })).toEqual(['home']);
  expect(names({ proxy: 'home', country: 'ES' })).toBeUndefined();
  expect(names({ proxy: 'fast', tor_network: true })).toEqual(['tor']);
  expect(names({ proxy: 'direct' })).toEqual([]);
  expect(names({ proxy: 'nobody' })).toBeUndefined();
});

test.each([
  ['{"DE":', 'must be JSON'],
  [`{"DE":"http://u:${SECRET}@`, 'must be JSON'],
  ['[]', 'JSON object'],
  [`{"DE":"ftp://u:${SECRET}@proxy:1"}`, 'the pool DE: proxies[0] must be'],
  [`{"de!":"http://u:${SECRET}@proxy:1"}`, 'de!'],
  ['{"direct":"http://proxy:1"}', 'direct'],
  ['{"tor":"direct"}', 'must be one URL'],
  ['{"a":[]}', 'the pool a: proxies must have a proxy'],
  [`{"a":{"urls":["http://u:${SECRET}@proxy:1"]}}`, 'urls must be one of proxies, gateway'],
  [`{"a":["http://u-{session}:${SECRET}@proxy:1"]}`, 'needs "gateway"'],
  [`{"a":{"gateway":"http://u-{country}:${SECRET}@proxy:1"}}`, 'countries must name a country'],
  [`{"a":{"gateway":"http://u-{session}:${SECRET}@proxy:1","sessions":0}}`, 'from 1 to'],
  ['{"a":{"proxies":["http://proxy:1"],"countries":["de"]}}', 'upper-case'],
  [`{"a":"socks5://:${SECRET}@proxy:1"}`, 'a user and a password'],
])('PROXIES=%s stops the start, and no password is shown', (text, why) => {
  const read = () => readConfig({ PROXIES: text });
  expect(read).toThrow('PROXIES');
  expect(read).toThrow(why);
  expect(read).not.toThrow(SECRET);
});
