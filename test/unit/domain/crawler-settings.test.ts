import { expect, test } from 'vitest';
import {
  checkSettings,
  defaultSettings,
  fromStoredSettings,
  toStoredSettings,
} from '../../../src/domain/crawler-settings.ts';

test('only what is given is checked and returned', () => {
  expect(checkSettings({})).toEqual({});
  expect(checkSettings({ maxRetries: 0, concurrency: undefined })).toEqual({ maxRetries: 0 });
});

test.each([
  [{ concurrency: 0 }, 'concurrency', 'concurrency must be a whole number from 1 to 1000.'],
  [{ concurrency: 1.5 }, 'concurrency', 'concurrency must be a whole number from 1 to 1000.'],
  [
    { deliveryConcurrency: -1 },
    'delivery_concurrency',
    'delivery_concurrency must be a whole number from 0 to 1000.',
  ],
  [{ maxRetries: 1_001 }, 'max_retries', 'max_retries must be a whole number from 0 to 1000.'],
  [
    { retryWindowHours: 337 },
    'retry_window_hours',
    'retry_window_hours must be a whole number from 1 to 336.',
  ],
  [
    { politeness: { maxPerHost: 1_001, delayMs: 0, robotsTxt: false } },
    'politeness.max_per_host',
    'politeness.max_per_host must be a whole number from 0 to 1000.',
  ],
  [
    { politeness: { maxPerHost: 0, delayMs: 3_600_001, robotsTxt: false } },
    'politeness.delay_ms',
    'politeness.delay_ms must be a whole number from 0 to 3600000.',
  ],
  [{ escalate: 'direct' }, 'escalate', 'escalate takes 2 to 8 rungs.'],
  [{ escalate: 'direct,pool:a, direct' }, 'escalate', 'escalate has the rung direct twice.'],
  [
    { escalate: 'direct,browser' },
    'escalate',
    'escalate: "browser" is no rung; a rung is direct, pool:NAME, browser:direct or browser:pool:NAME.',
  ],
  [
    { escalate: 'direct,http://user:secret@proxy.example:80' },
    'escalate',
    'escalate: a URL is no rung; a rung is direct, pool:NAME, browser:direct or browser:pool:NAME.',
  ],
])('%j is refused, naming the field of the request', (input, field, message) => {
  expect(() => checkSettings(input)).toThrow(
    expect.objectContaining({ kind: 'invalid', field, message }),
  );
});

test('politeness that asks for nothing is off', () => {
  const off = { maxPerHost: 0, delayMs: 0, robotsTxt: false };
  expect(checkSettings({ politeness: off })).toEqual({ politeness: undefined });
  expect(Object.keys(checkSettings({ politeness: off }))).toEqual(['politeness']);
});

test('settings survive a store that keeps JSON, and a setting that was off stays off', () => {
  const politeness = { maxPerHost: 2, delayMs: 0, robotsTxt: true };
  for (const settings of [defaultSettings, { ...defaultSettings, concurrency: 7, politeness }]) {
    const stored = JSON.parse(JSON.stringify(toStoredSettings(settings))) as object;
    expect(fromStoredSettings(stored)).toEqual(settings);
  }
});

test('a crawler that was stored before a setting existed has its default', () => {
  expect(fromStoredSettings({ concurrency: 3 })).toEqual({ ...defaultSettings, concurrency: 3 });
});
