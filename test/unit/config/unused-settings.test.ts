import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';
import { unusedSettings } from '../../../src/config/unused-settings.ts';

const MONGODB_URI = 'mongodb://127.0.0.1/crawler';

test.each([
  ['backups of MongoDB', { MONGODB_URI, BACKUP_EVERY_HOURS: '24' }, /^BACKUP_EVERY_HOURS /],
  ['an api alone', { ROLE: 'api' }, /^ROLE=api .* no process crawls/],
  ['a worker alone', { ROLE: 'worker' }, /^ROLE=worker .* no process takes URLs/],
])('%s: the start warns and names the setting', (_name, env, warning) => {
  expect(unusedSettings(readConfig(env))).toEqual([expect.stringMatching(warning)]);
});

test.each([{}, { BACKUP_EVERY_HOURS: '24' }, { MONGODB_URI }, { MONGODB_URI, ROLE: 'worker' }])(
  'settings that belong together are not warned of: %o',
  (env) => {
    expect(unusedSettings(readConfig(env))).toEqual([]);
  },
);

test.each([
  { MAIL_FROM: 'nonsense' },
  { MAIL_FROM: 'Crawler <nonsense>' },
  { ACCOUNT_EMAIL: 'nonsense' },
  { ACCOUNT_EMAIL: 'a@example.com, b@example.com' },
])('%o is no address: it stops the start', (env) => {
  const [variable] = Object.keys(env);
  expect(() => readConfig(env)).toThrow(ConfigError);
  expect(() => readConfig(env)).toThrow(new RegExp(`^${variable}: must be one e-mail address`));
});

test.each(['crawler@localhost', 'Crawler <crawler@mail.example>'])('%s may send mail', (from) => {
  expect(readConfig({ MAIL_FROM: from }).mailFrom).toBe(from);
});
