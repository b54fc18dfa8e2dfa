import { Registry } from 'prom-client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { databaseAnswers } from '../../../src/observability/database-answers.ts';
import { createQueueGauges } from '../../../src/observability/queue-gauges.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = () => new Promise<never>(() => undefined);

test('a database that says nothing counts as away after two seconds', async () => {
  const answers = databaseAnswers(never);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await answers).toBe(false);
});

test('a database that says nothing keeps no scraper waiting for longer than five seconds', async () => {
  const registry = new Registry();
  const clock = { now: () => new Date() };
  createQueueGauges(registry, { read: never, attention: never, clock, byCrawler: true });
  const scraped = registry.metrics();
  await vi.advanceTimersByTimeAsync(5_000);
  const text = await scraped;
  expect(text).toContain('# TYPE queued_crawler_queue_urls gauge');
  expect(text).not.toMatch(/^queued_crawler/m);
});
