import { describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';

describe('settings of the network', () => {
  test.each([
    ['9.9.9.9', ['9.9.9.9:53']],
    ['127.0.0.1:5353, 2620:fe::fe', ['127.0.0.1:5353', '[2620:fe::fe]:53']],
    ['[::1]:5300,[::2]', ['[::1]:5300', '[::2]:53']],
    ['', []],
  ])('DNS_SERVERS=%s', (text, servers) => {
    expect(readConfig({ DNS_SERVERS: text }).dnsServers).toEqual(servers);
  });

  test.each([
    ['DNS_SERVERS', 'dns.example', 'no address of a name server'],
    ['DNS_SERVERS', '9.9.9.9:0', 'no address of a name server'],
    ['DNS_SERVERS', '9.9.9', 'no address of a name server'],
    ['NETWORK_ALLOW', '*.internal:80', 'wildcard'],
    ['NETWORK_ALLOW', '::1:80', 'write [::1]:80'],
    ['NETWORK_DENY', '10.1.2.3/8', 'within 10.0.0.0/8'],
    ['PROXY_TARGET', 'ip', 'one of address, name'],
  ])('%s=%s stops the start and says why', (variable, text, why) => {
    const read = () => readConfig({ [variable]: text });
    expect(read).toThrow(variable);
    expect(read).toThrow(why);
  });
});
