import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/config/config.ts';

test.each([
  // Without a host, links in replies would lead nowhere.
  ['PUBLIC_URL', 'http://'],
  ['PUBLIC_URL', 'https://crawler example'],
  ['PUBLIC_URL', 'https://crawler.example:99999'],
  // Paths are appended.
  ['PUBLIC_URL', 'https://crawler.example/?from=mail'],
  ['PUBLIC_URL', 'https://crawler.example/#top'],
  ['SMTP_URL', 'smtp://'],
  ['SMTP_URL', 'smtps://operator:secret-word@'],
  ['SMTP_URL', 'smtps://operator:secret-word@mail.example:smtp'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://'],
])('%s refuses %s at the start, and keeps passwords to itself', (variable, value) => {
  expect(() => readConfig({ [variable]: value })).toThrow(ConfigError);
  expect(() => readConfig({ [variable]: value })).toThrow(new RegExp(`^${variable}: must be`));
  expect(() => readConfig({ [variable]: value })).not.toThrow(/secret-word/);
});

test.each([
  ['PUBLIC_URL', 'https://crawler.example/service/'],
  ['PUBLIC_URL', 'http://[::1]:8080'],
  ['SMTP_URL', 'smtps://user:password@mail.example:465'],
  ['SMTP_URL', 'smtp://mail.example?name=crawler.example'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://localhost:4318'],
  // Not a URL as URL parsers know it: several hosts.
  ['MONGODB_URI', 'mongodb://a.example:27017,b.example:27018/crawler?replicaSet=rs0'],
  ['MONGODB_URI', 'mongodb+srv://crawler.example/crawler'],
])('%s takes %s', (variable, value) => {
  expect(Object.values(readConfig({ [variable]: value }))).toContain(value);
});

test('a token of few characters is refused with how many different ones it needs', () => {
  expect(() => readConfig({ ADMIN_TOKEN: 'ab'.repeat(12) })).toThrow(/6 different characters/);
});
