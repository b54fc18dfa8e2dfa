import { expect, test } from 'vitest';
import { JAVASCRIPT, NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startSite } from '../support/site.ts';
import { createTestClock } from '../support/test-clock.ts';

const MINUTE = 60_000;

interface Point {
  readonly at: string;
  readonly missing?: boolean;
  readonly pushed?: number;
  readonly success?: number;
  readonly failed?: number;
  readonly queued?: number;
  readonly median_ms?: number;
  readonly p95_ms?: number;
}

test('a timeline shows what crawlers did, their queues and times, at every resolution', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const shop = await createCrawler(app, 'shop', { max_retries: 0 });
  const paused = await createCrawler(app, 'paused');
  await app.rest('POST', `${paused.path}/pause`);
  const read = async (range: string, ...crawlers: string[]) => {
    const names = crawlers.map((name) => `crawlers=${name}`).join('&');
    const { json, status } = await app.rest('GET', `/timeline/${NORMAL}?range=${range}&${names}`);
    expect(status).toBe(200);
    return json as { step_seconds: number; crawlers: { name: string; points: Point[] }[] };
  };
  const sum = (points: readonly Point[] = [], field: 'pushed' | 'success' | 'failed') =>
    points.reduce((all, point) => all + (point[field] ?? 0), 0);

  for (const page of [1, 2, 3]) await shop.push(`${site.url}/page/${page}`);
  await shop.push(`${site.url}/status/500`);
  await paused.push(`${site.url}/page/4`);
  await eventually(async () => {
    expect(Number((await shop.details()).activity.completed)).toBe(3);
    expect(Number((await shop.details()).activity.failed)).toBe(1);
  });
  clock.advance(MINUTE);
  for (const [range, steps, seconds] of [
    ['hour', 60, 60],
    ['day', 144, 600],
    ['week', 168, 3_600],
    ['quarter', 90, 86_400],
  ] as const) {
    await eventually(async () => {
      const { step_seconds, crawlers } = await read(range, 'shop', 'paused');
      expect(step_seconds).toBe(seconds);
      expect(crawlers.map(({ name }) => name)).toEqual(['shop', 'paused']);
      const [own, other] = crawlers.map(({ points }) => points);
      expect(own).toHaveLength(steps);
      expect([sum(own, 'pushed'), sum(own, 'success'), sum(own, 'failed')]).toEqual([4, 3, 1]);
      const timed = own?.filter(({ median_ms }) => median_ms !== undefined) ?? [];
      expect(timed.length).toBeGreaterThan(0);
      for (const { median_ms = 0, p95_ms = 0 } of timed) {
        expect(p95_ms).toBeGreaterThanOrEqual(median_ms);
      }
      expect(sum(other, 'pushed')).toBe(1);
      if (range !== 'quarter') expect(Number(other?.at(-1)?.queued)).toBe(1);
      if (range === 'hour') expect(own?.[0]?.missing).toBe(true);
    });
  }

  // Of either token, up to ten, which have to exist.
  const { json } = await app.rest('GET', `/timeline/${JAVASCRIPT}?crawlers=shop`);
  expect(json.crawlers).toHaveLength(1);
  const refused = async (query: string) => {
    const { status, json: error } = await app.rest('GET', `/timeline/${NORMAL}?${query}`);
    return [status, error.code, error.field];
  };
  expect(await refused('')).toEqual([422, 'invalid_crawlers', 'crawlers']);
  expect(await refused('crawlers=nobody')).toEqual([404, 'crawler_not_found', 'crawlers']);
  expect((await refused('crawlers=shop&range=year'))[0]).toBe(422);
});
