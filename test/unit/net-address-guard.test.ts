import { describe, expect, test } from 'vitest';
import { createAddressGuard, isPublicAddress } from '../../src/net/address-guard.ts';
import { parseNetworkAllow } from '../../src/net/network-allow.ts';

describe('addresses that are not public', () => {
  test.each([
    ['0.0.0.0', 'reaches the own machine'],
    ['0.1.2.3', 'this network'],
    ['10.0.0.1', 'private'],
    ['10.255.255.255', 'private, last'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['100.100.100.200', 'a cloud metadata service in CGNAT space'],
    ['100.127.255.255', 'carrier-grade NAT, last'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['168.63.129.16', 'a cloud machine service that looks public'],
    ['169.254.0.1', 'link-local'],
    ['169.254.169.254', 'most metadata services'],
    ['169.254.170.2', 'container credentials'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private, last'],
    ['192.0.0.1', 'protocol assignments'],
    ['192.0.0.192', 'a cloud metadata service'],
    ['192.0.2.1', 'documentation'],
    ['192.88.99.1', '6to4 relay'],
    ['192.168.0.1', 'private'],
    ['198.18.0.1', 'benchmarks'],
    ['198.19.255.255', 'benchmarks, last'],
    ['198.51.100.1', 'documentation'],
    ['203.0.113.1', 'documentation'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.250', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['0:0:0:0:0:0:0:1', 'loopback, written out'],
    ['::127.0.0.1', 'IPv4-compatible'],
    ['::8.8.8.8', 'IPv4-compatible, even of a public one'],
    ['::ffff:127.0.0.1', 'mapped loopback'],
    ['::ffff:7f00:1', 'mapped loopback in hexadecimal'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'mapped metadata'],
    ['::ffff:0:127.0.0.1', 'SIIT translated'],
    ['64:ff9b::127.0.0.1', 'NAT64 of loopback'],
    ['64:ff9b::a00:1', 'NAT64 of private'],
    ['64:ff9b:1::8.8.8.8', 'local NAT64'],
    ['100::1', 'discard'],
    ['2001::1', 'Teredo'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'Teredo'],
    ['2001:2::1', 'benchmarks'],
    ['2001:10::1', 'ORCHID'],
    ['2001:db8::1', 'documentation'],
    ['2002:7f00:1::', '6to4 of loopback'],
    ['2002:a9fe:a9fe::1', '6to4 of metadata'],
    ['2002:c0a8:101::1', '6to4 of private'],
    ['3fff::1', 'documentation'],
    ['3ffe::1', '6bone'],
    ['4000::1', 'not assigned'],
    ['5f00::1', 'segment routing'],
    ['fc00::1', 'unique local'],
    ['fd00:ec2::254', 'a cloud metadata service'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'with a zone'],
    ['2606:4700::1%eth0', 'public, but with a zone'],
    ['fec0::1', 'site-local'],
    ['ff02::1', 'multicast'],
    ['', 'nothing'],
    ['localhost', 'a name'],
    ['0x7f000001', 'not a canonical spelling'],
    ['2130706433', 'not a canonical spelling'],
    ['127.1', 'not a canonical spelling'],
    ['8.8.8', 'not a canonical spelling'],
    ['008.8.8.8', 'not a canonical spelling'],
    ['8.8.8.8 ', 'white space'],
  ])('%s: %s', (address) => {
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
    ['192.168.7.7', '192.168.7.7', 9, true, 'the address, any port'],
    ['192.168.7.8', '192.168.7.8', 9, false, 'another address'],
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
    expect(guard.permits({ hostname, address, port })).toBe(expected);
  });
});

describe('entries that are none', () => {
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
  ])('%s: %s', (entry) => {
    expect(() => parseNetworkAllow(`10.0.0.0/8,${entry}`)).toThrow(`"${entry}"`);
  });

  test('nothing allows nothing', () => {
    expect(parseNetworkAllow(' , ')).toMatchObject({ blocks: [], hosts: new Set() });
  });
});
