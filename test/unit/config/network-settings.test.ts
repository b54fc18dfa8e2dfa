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
    [
      'TRUSTED_PROXIES',
      '10.0.0.1,nginx',
      `"nginx" is not a CIDR (10.0.0.0/8) or an address (10.1.2.3)`,
    ],
    [
      'TRUSTED_PROXIES',
      '10.0.0.0/33',
      `"10.0.0.0/33" is not a CIDR (10.0.0.0/8) or an address (10.1.2.3)`,
    ],
    ['TRUSTED_PROXIES', '10.0.0.1;10.0.0.2', 'separate entries by commas'],
    ['NETWORK_ALLOW', '10.0.0.1 10.0.0.2', 'separate entries by commas'],
    [
      'NETWORK_DENY',
      'http://a.example',
      '"http://a.example" is not a CIDR (10.0.0.0/8), an address (10.1.2.3), a name',
    ],
    ['WEBHOOK_PLAIN_HOSTS', 'make.com,http://x/y', '"http://x/y" is not a host (hooks.zapier.com)'],
    ['WEBHOOK_RETRY_SCHEDULE', '5s,31d', 'a wait must be at most 30d, not "31d"'],
  ])('%s=%s stops the start and says why', (variable, text, why) => {
    const read = () => readConfig({ [variable]: text });
    expect(read).toThrow(variable);
    expect(read).toThrow(why);
  });
});

test('of lists of secrets the place of the wrong entry is told, not its text', () => {
  const key = 'abcdefabcdef12345678';
  for (const [variable, text, why] of [
    ['PROXY_SEAL_KEY', `${key},short`, 'entry 2 must be 16 to 128 letters'],
    ['PROXY_SEAL_KEY', `${key},,`, 'entry 2 is empty'],
    [
      'OTEL_EXPORTER_OTLP_HEADERS',
      'a=b,secret',
      'entry 2 must be name=value, such as api-key=VALUE',
    ],
  ] as const) {
    const read = () => readConfig({ [variable]: text });
    expect(read).toThrow(`${variable}: ${why}`);
    expect(read).not.toThrow(/short|secret/);
  }
});
