import { expect, test } from 'vitest';
import { misspeltSettings } from '../../../src/config/misspelt-settings.ts';

test.each([
  ['MONGODB_URL', 'MONGODB_URI'],
  ['MONGO_URI', 'MONGODB_URI'],
  ['CRAWL_THREAD', 'CRAWL_THREADS'],
  ['PORTS', 'PORT'],
  ['PROT', 'PORT'],
  ['HOTS', 'HOST'],
  ['SMTP_URI', 'SMTP_URL'],
])('%s is taken for a misspelt %s, and its value is not told', (name, meant) => {
  const warnings = misspeltSettings({ [name]: 'mongodb://user:secret@db/crawler' });
  expect(warnings).toEqual([`${name} is not a setting: did you mean ${meant}?`]);
});

test('what other programs, Kubernetes and OpenTelemetry set is not warned of', () => {
  const env = {
    HOME: '/root',
    PATH: '/bin',
    HOSTNAME: 'a',
    LOGNAME: 'a',
    TROP: 'a',
    MONGODB_PORT: 'tcp://10.0.0.1:27017',
    MONGODB_SERVICE_HOST: '10.0.0.1',
    NODE_OPTIONS: '',
    OTEL_TRACES_SAMPLER: 'always_on',
    npm_config_port: '80',
  };
  expect(misspeltSettings(env)).toEqual([]);
});

test('settings themselves are not warned of', () => {
  expect(misspeltSettings({ MONGODB_URI: '', PORT: '1', TLS_KEY: '', TLS_CERT: '' })).toEqual([]);
});
