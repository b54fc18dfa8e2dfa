import { describe, expect, test } from 'vitest';
import { createAddressGuard, isPublicAddress } from '../../../src/net/address-guard.ts';
import { parseNetworkAllow } from '../../../src/net/network-allow.ts';
import { parseNetworkDeny } from '../../../src/net/network-deny.ts';
import { createOwnAddresses } from '../../../src/net/own-addresses.ts';
import { NOT_PUBLIC } from '../../support/not-public.ts';

describe('addresses that are not public', () => {
  test.each(NOT_PUBLIC)('%s: %s', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe('public addresses', () => {
  test.each([
    ['8.8.8.8'],
    ['1.1.1.1'],
    ['9.255.255.255'],
    ['11.0.0.0'],
    ['100.63.255.255'],
    ['100.128.0.0'],
    ['172.15.255.255'],
    ['172.32.0.0'],
    ['192.167.255.255'],
    ['198.17.255.255'],
    ['198.20.0.0'],
    ['223.255.255.255'],
    ['2606:4700:4700::1111'],
    ['2001:4860:4860::8888'],
    ['2a00:1450:4001:80b::200e'],
    ['::ffff:8.8.8.8'],
    ['64:ff9b::8.8.8.8'],
    ['2002:808:808::1'],
    ['2a00:1450:4001::5efe:8.8.8.8'],
  ])('%s', (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe('what the operator allows', () => {
  const guard = createAddressGuard(
    parseNetworkAllow(
      ' 10.1.0.0/16, fd12::/16,192.168.7.7 ,Db.Internal:5000,127.0.0.1:3000,[::1]:3001,',
    ),
  );

  test.each([
    ['10.1.2.3', '10.1.2.3', 80, true, 'in the CIDR'],
    ['any.name', '10.1.2.3', 443, true, 'in the CIDR, by a name'],
    ['10.2.0.1', '10.2.0.1', 80, false, 'next to the CIDR'],
    ['::ffff:10.1.2.3', '::ffff:10.1.2.3', 80, true, 'mapped, in the CIDR'],
    ['64:ff9b::10.1.2.3', '64:ff9b::10.1.2.3', 80, false, 'NAT64 needs a CIDR of its own'],
    ['fd12::9', 'fd12::9', 80, true, 'in the IPv6 CIDR'],
    ['fd13::9', 'fd13::9', 80, false, 'next to the IPv6 CIDR'],
    ['192.168.7.7', '192.168.7.7', 9000, true, 'the address, any port of HTTP'],
    ['192.168.7.7', '192.168.7.7', 22, false, 'but not of another protocol'],
    ['192.168.7.8', '192.168.7.8', 9000, false, 'another address'],
    ['db.internal', '172.16.0.9', 5000, true, 'the name with its port'],
    ['DB.internal', '172.16.0.9', 5000, true, 'whatever its spelling'],
    ['db.internal', '172.16.0.9', 5001, false, 'another port'],
    ['evil.example', '172.16.0.9', 5000, false, 'another name for the address'],
    ['127.0.0.1', '127.0.0.1', 3000, true, 'the address with its port'],
    ['localhost', '127.0.0.1', 3000, true, 'a name for that address'],
    ['localhost', '127.0.0.1', 3001, false, 'the port of another entry'],
    ['::1', '::1', 3001, true, 'IPv6 with its port'],
    ['example.com', '93.184.215.14', 80, true, 'public anyway'],
  ])('%s at %s port %i: %s (%s)', (hostname, address, port, expected) => {
    expect(guard.refusal({ hostname, address, port }) === undefined).toBe(expected);
  });
});

describe('invalid entries', () => {
  test.each([
    ['localhost', 'a name needs its port'],
    ['10.0.0.0/33', 'too long a prefix'],
    ['::/129', 'too long a prefix'],
    ['10.0.0/8', 'not an address'],
    ['10.0.0.0/', 'no prefix'],
    ['10.0.0.0/8/8', 'two prefixes'],
    ['10.0.0.0/-1', 'negative'],
    ['host:0', 'no port'],
    ['host:65536', 'no port'],
    ['host:http', 'no port'],
    ['http://host:80', 'a URL'],
    ['::1:3000x', 'neither'],
    ['[::zz]:80', 'not an address'],
    ['a b:80', 'white space'],
    ['*', 'no wildcards'],
    ['*:80', 'no wildcards'],
    ['*.internal:80', 'no wildcards'],
    ['::1:80', 'an address, or another with a port'],
    ['fd00::5:1', 'the same'],
    ['10.1.2.3/8', 'an address within the block'],
    ['fd00::1/64', 'the same'],
    ['ex%61mple:80', 'an escape'],
    ['user@host:80', 'a user'],
    ['a/b:80', 'a path'],
  ])('%s: %s', (entry) => {
    expect(() => parseNetworkAllow(`10.0.0.0/8,${entry}`)).toThrow(`"${entry}"`);
  });

  test('nothing allows nothing', () => {
    expect(parseNetworkAllow(' , ')).toMatchObject({ blocks: [], hosts: new Set() });
  });
});

describe('what could be read in two ways', () => {
  test('is told apart in the message', () => {
    expect(() => parseNetworkAllow('::1:80')).toThrow('write [::1]:80 or ::1:80/128');
    expect(() => parseNetworkAllow('10.1.2.3/8')).toThrow('within 10.0.0.0/8');
    expect(parseNetworkAllow('::1:80/128').blocks).toEqual(['::1:80/128']);
    expect(parseNetworkAllow('fd00::1,1:2:3:4:5:6:7:8,::').blocks).toEqual([
      'fd00::1/128',
      '1:2:3:4:5:6:7:8/128',
      '::/128',
    ]);
  });

  test('settings can be sent to a thread', () => {
    const allow = parseNetworkAllow('10.0.0.0/8,box:80');
    const deny = parseNetworkDeny('10.1.0.0/16');
    const { refusal } = createAddressGuard(structuredClone(allow), {
      deny: structuredClone(deny),
    });
    expect(refusal({ hostname: 'a', address: '10.2.0.1', port: 80 })).toBeUndefined();
    expect(refusal({ hostname: 'a', address: '10.1.0.1', port: 80 })).toBe('address_not_allowed');
  });
});

describe('what the operator denies', () => {
  const guard = createAddressGuard(parseNetworkAllow('10.0.0.0/8,db.internal:5000'), {
    deny: parseNetworkDeny(
      '8.8.8.0/24, 2606:4700::/32,10.9.0.0/16,Example.com,db.internal,198.18.0.1:81,api.test:8443',
    ),
  });
  test.each([
    ['8.8.8.8', '8.8.8.8', 80, false, 'a public block'],
    ['name.test', '8.8.8.8', 80, false, 'by any name'],
    ['::ffff:8.8.8.8', '::ffff:8.8.8.8', 80, false, 'mapped'],
    ['64:ff9b::808:808', '64:ff9b::808:808', 80, false, 'by NAT64'],
    ['2002:808:808::1', '2002:808:808::1', 80, false, 'by 6to4'],
    ['8.8.9.8', '8.8.9.8', 80, true, 'next to it'],
    ['cdn.test', '2606:4700::1', 443, false, 'IPv6'],
    ['10.9.1.1', '10.9.1.1', 80, false, 'within what is allowed'],
    ['10.8.1.1', '10.8.1.1', 80, true, 'allowed'],
    ['example.com', '93.184.215.14', 80, false, 'a name'],
    ['WWW.example.com.', '93.184.215.14', 80, false, 'below it'],
    ['notexample.com', '93.184.215.14', 80, true, 'another name'],
    ['db.internal', '10.1.1.1', 5000, false, 'deny beats allow'],
    ['api.test', '93.184.215.14', 8443, false, 'a name with its port'],
    ['api.test', '93.184.215.14', 443, true, 'another port'],
  ])('%s at %s port %i: %s (%s)', (hostname, address, port, expected) => {
    expect(guard.refusal({ hostname, address, port }) === undefined).toBe(expected);
  });

  test.each([['http://x/'], ['*.test'], ['10.0.0.1/8'], ['a b'], ['x:0'], ['::1:80']])(
    '%s is invalid',
    (entry) => {
      expect(() => parseNetworkDeny(`8.8.8.8,${entry}`)).toThrow(`"${entry}"`);
    },
  );
});

describe("this machine's own addresses", () => {
  const own = ['93.184.215.14', '2606:4700::9', '10.0.0.5', 'fe80::1%eth0'];
  const guard = (allow: string) =>
    createAddressGuard(parseNetworkAllow(allow), { ownAddresses: () => own });

  test.each([
    ['', '93.184.215.14', false, 'though public'],
    ['', '2606:4700:0:0::9', false, 'however spelled'],
    ['', '::ffff:93.184.215.14', false, 'mapped'],
    ['', '2002:5db8:d70e::1', false, 'by 6to4'],
    ['', '93.184.215.15', true, 'the neighbour'],
    ['93.184.215.14', '93.184.215.14', true, 'allowed as an address'],
    ['93.184.215.14:80', '93.184.215.14', true, 'allowed with the port'],
    ['93.184.215.14:81', '93.184.215.14', false, 'another port'],
  ])('allowing %j, %s is %s (%s)', (allow, address, expected) => {
    expect(guard(allow).refusal({ hostname: 'x.test', address, port: 80 }) === undefined).toBe(
      expected,
    );
  });

  test('are read from its interfaces', () => {
    const addresses = createOwnAddresses()();
    expect(addresses).toContain('127.0.0.1');
  });
});

describe('ports of other protocols', () => {
  const { refusal } = createAddressGuard(parseNetworkAllow('10.0.0.0/8,10.0.0.1:22,git.test:22'));
  test.each([
    ['example.com', '93.184.215.14', 22, 'port_not_allowed'],
    ['example.com', '93.184.215.14', 25, 'port_not_allowed'],
    ['example.com', '93.184.215.14', 6667, 'port_not_allowed'],
    ['example.com', '93.184.215.14', 8080, undefined],
    ['10.0.0.2', '10.0.0.2', 22, 'port_not_allowed'],
    ['10.0.0.1', '10.0.0.1', 22, undefined],
    ['git.test', '93.184.215.14', 22, undefined],
    ['127.0.0.1', '127.0.0.1', 22, 'address_not_allowed'],
  ])('%s at %s port %i: %s', (hostname, address, port, expected) => {
    expect(refusal({ hostname, address, port })).toBe(expected);
  });
});
