import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';
import { printWelcome } from '../../../src/welcome.ts';

test.each([
  ['NORMAL_TOKEN', { NORMAL_TOKEN: '12345678' }],
  ['ADMIN_TOKEN', { ADMIN_TOKEN: 'abababababababababab' }],
  ['JAVASCRIPT_TOKEN', { JAVASCRIPT_TOKEN: 'has spaces in it, which' }],
  [
    'JAVASCRIPT_TOKEN',
    { NORMAL_TOKEN: 'the-same-for-both-0', JAVASCRIPT_TOKEN: 'the-same-for-both-0' },
  ],
  ['ADMIN_TOKEN', { NORMAL_TOKEN: 'the-same-for-both-0', ADMIN_TOKEN: 'the-same-for-both-0' }],
])('a weak token stops the start, and names %s', (variable, env) => {
  expect(() => readConfig(env)).toThrow(ConfigError);
  expect(() => readConfig(env)).toThrow(new RegExp(`^${variable}: `));
  for (const token of Object.values(env)) {
    expect(() => readConfig(env)).not.toThrow(new RegExp(token));
  }
});

test('the welcome shows tokens that were made up, and no preset one', () => {
  let shown = '';
  const app = { url: 'http://h', newTokens: { normal: 'preset-normal', javascript: 'made-up' } };
  const config = readConfig({ NORMAL_TOKEN: 'preset-normal-token' });
  printWelcome({ ...app, database: 'embedded' }, config, {
    write(text) {
      shown += text;
    },
  });
  expect(shown).toContain('made-up');
  expect(shown).not.toContain('preset-normal');
});
