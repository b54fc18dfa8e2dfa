import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { LookupError } from '../../../src/net/dns-query.ts';
import { parseHosts, parseSearchDomains } from '../../../src/net/hosts-file.ts';
import { createResolver } from '../../../src/net/resolver.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const FOUR = { address: '192.0.2.1', family: 4 };
const SIX = { address: '2001:db8:0:0:0:0:0:1', family: 6 };

/** Files that are not there: the machine's own must not matter. */
const NO_FILES = { hostsFile: '/nowhere/hosts', resolvConf: '/nowhere/resolv.conf' };

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof LookupError ? error.code : String(error);
}

describe('names', () => {
  test('have the addresses of both families, IPv4 first', async () => {
    await using dns = await startDnsServer({
      'both.test': [SIX.address, FOUR.address],
      'four.test': [FOUR.address],
      'six.test': ['2001:db8::1'],
    });
    const lookup = createResolver({ servers: [dns.address], ...NO_FILES });
    expect(await lookup('both.test')).toEqual([FOUR, { ...SIX, address: '2001:db8::1' }]);
    expect(await lookup('FOUR.test.')).toEqual([FOUR]);
    expect(await lookup('six.test')).toEqual([{ ...SIX, address: '2001:db8::1' }]);
    expect(dns.asked.toSorted().slice(0, 2)).toEqual(['A both.test', 'A four.test']);
  });

  test('that do not exist, have no address, or are no names', async () => {
    await using dns = await startDnsServer({ 'empty.test': [] });
    const lookup = createResolver({ servers: [dns.address], ...NO_FILES });
    for (const name of ['no.test', 'empty.test', 'a..b', 'x'.repeat(70), 'secret.onion', '']) {
      expect(await codeOf(lookup(name)), name).toBe('ENOTFOUND');
    }
    expect(dns.asked.some((each) => each.includes('onion'))).toBe(false);
  });

  test('whose server is silent or broken end in time', async () => {
    await using dns = await startDnsServer({ 'dead.test': 'silent', 'broken.test': 'servfail' });
    const lookup = createResolver({ servers: [dns.address], timeoutMs: 300, ...NO_FILES });
    expect(await codeOf(lookup('dead.test'))).toBe('EAI_AGAIN');
    expect(await codeOf(lookup('broken.test'))).toBe('EAI_AGAIN');
  });

  test('are not held up by a server that is silent about one family', async () => {
    await using dns = await startDnsServer({ 'half.test': { onlyIpv4: [FOUR.address] } });
    const lookup = createResolver({ servers: [dns.address], ...NO_FILES });
    expect(await lookup('half.test')).toEqual([FOUR]);
  });

  test('are asked for once by many at once, and kept at least five seconds', async () => {
    await using dns = await startDnsServer({ 'rebind.test': (nth) => [`192.0.2.${nth}`] });
    const lookup = createResolver({ servers: [dns.address], ...NO_FILES });
    const all = await Promise.all(Array.from({ length: 20 }, () => lookup('rebind.test')));
    expect(new Set(all.map((each) => each[0]?.address))).toEqual(new Set(['192.0.2.1']));
    expect((await lookup('rebind.test'))[0]?.address).toBe('192.0.2.1');
    expect(dns.asked).toHaveLength(2);
  });

  test('that failed are asked for again after a moment', async () => {
    let exists = false;
    await using dns = await startDnsServer({ 'late.test': () => (exists ? [FOUR.address] : []) });
    const lookup = createResolver({ servers: [dns.address], ...NO_FILES });
    expect(await codeOf(lookup('late.test'))).toBe('ENOTFOUND');
    for (let n = 0; n < 20; n += 1) expect(await codeOf(lookup('late.test'))).toBe('ENOTFOUND');
    // Each question is for two families; a slow machine may get to ask again.
    expect(dns.asked.length).toBeLessThan(2 * 20);
    exists = true;
    await eventually(async () => expect(await lookup('late.test')).toEqual([FOUR]));
  });
});

describe('this machine', () => {
  test('knows localhost, addresses and its hosts file, also when that changes', async () => {
    await using folder = await temporaryFolder();
    const hostsFile = join(folder.path, 'hosts');
    await writeFile(hostsFile, '192.0.2.1 Box box.internal # a comment\n::1 box\nnonsense x\n');
    await using dns = await startDnsServer({ 'box.internal': ['192.0.2.99'] });
    const lookup = createResolver({
      servers: [dns.address],
      hostsFile,
      resolvConf: NO_FILES.resolvConf,
    });
    expect(await lookup('box')).toEqual([FOUR, { address: '::1', family: 6 }]);
    expect(await lookup('BOX.internal')).toEqual([FOUR]);
    for (const name of ['localhost', 'LOCALHOST.', 'a.localhost']) {
      expect((await lookup(name))[0]).toEqual({ address: '127.0.0.1', family: 4 });
    }
    expect(await lookup('192.0.2.7')).toEqual([{ address: '192.0.2.7', family: 4 }]);
    expect(dns.asked).toEqual([]);
    await rm(hostsFile);
    await eventually(async () =>
      expect(await lookup('box.internal')).toEqual([{ address: '192.0.2.99', family: 4 }]),
    );
  });

  test('has search domains for names without a dot only', async () => {
    await using folder = await temporaryFolder();
    const resolvConf = join(folder.path, 'resolv.conf');
    await writeFile(resolvConf, 'nameserver 192.0.2.53\nsearch first.test second.test\n');
    await using dns = await startDnsServer({
      'shop.second.test': [FOUR.address],
      'a.shop.first.test': ['192.0.2.66'],
    });
    const lookup = createResolver({
      servers: [dns.address],
      resolvConf,
      hostsFile: NO_FILES.hostsFile,
    });
    expect(await lookup('shop')).toEqual([FOUR]);
    expect(await codeOf(lookup('a.shop'))).toBe('ENOTFOUND');
  });

  test('has files that are read leniently', () => {
    expect([...parseHosts('').keys()]).toEqual([]);
    expect(parseHosts('10.0.0.1\ta  b\r\n#x\n300.1.1.1 c').get('b')).toEqual([
      { address: '10.0.0.1', family: 4 },
    ]);
    expect(parseSearchDomains('search a b\ndomain c')).toEqual(['c']);
    expect(parseSearchDomains('search .\noptions ndots:5')).toEqual([]);
  });
});

describe('look-ups under way', () => {
  test('of one account never keep another waiting', async () => {
    await using dns = await startDnsServer({
      '*.dead.test': 'silent',
      'good.test': [FOUR.address],
    });
    const lookup = createResolver({
      servers: [dns.address],
      timeoutMs: 1_500,
      capacity: 8,
      ...NO_FILES,
    });
    const hog = { accountId: 'hog', crawlerId: 'c' };
    const dead = Array.from({ length: 20 }, (_, n) => codeOf(lookup(`${n}.dead.test`, hog)));
    let ended = 0;
    for (const each of dead) void each.then(() => (ended += 1));
    expect(await lookup('good.test', { accountId: 'victim' })).toEqual([FOUR]);
    expect(ended).toBeLessThan(20);
    expect(new Set(await Promise.all(dead))).toEqual(new Set(['EAI_AGAIN']));
  });
});
