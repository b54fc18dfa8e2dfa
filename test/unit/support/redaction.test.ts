import { expect, test } from 'vitest';
import { hasSecret, rememberSecrets } from '../../support/redaction.ts';
import { NORMAL } from '../../support/tokens.ts';

test.each([
  `{"route":"/crawler/${NORMAL}/stats"}`,
  '{"headers":{"authorization":"Bearer abcdefgh12345"}}',
  '{"secret":"whsec_c2VjcmV0"}',
  '{"proxy":"http://user:password@proxy.example:8080"}',
  '{"callback":"https://example.com/hook?key=1"}',
])('%s holds a secret', (line) => {
  expect(hasSecret(line)).toBe(true);
});

test('tokens of replies are secrets from then on, and other lines are not', () => {
  const line = '{"url":"https://example.com/","token":"Zt7-new-token"}';
  expect(hasSecret(line)).toBe(false);
  rememberSecrets({ account: { name: 'a' }, tokens: [{ normal_token: 'Zt7-new-token' }] });
  expect(hasSecret(line)).toBe(true);
});
