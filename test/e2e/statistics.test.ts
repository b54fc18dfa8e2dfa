import { expect, test } from 'vitest';
import { NORMAL, startApp } from '../support/app.ts';
import { createCrawler } from '../support/crawler-client.ts';
import { eventually } from '../support/eventually.ts';
import { startReceiver } from '../support/receiver.ts';
import { startSite } from '../support/site.ts';
import { sumDays } from '../support/sum-days.ts';
import { createTestClock } from '../support/test-clock.ts';

const DAY = 24 * 3_600_000;
const toDay = (moment: Date): string => moment.toISOString().slice(0, 10);

interface Activity {
  readonly [counter: string]: number;
}

function balance(activity: Activity): number {
  const parts = ['waiting', 'running', 'retrying', 'completed', 'failed', 'deleted', 'purged'];
  return parts.reduce((sum, part) => sum + (activity[part] ?? Number.NaN), 0);
}

test('the counters add up at every moment, whatever becomes of the URLs', async () => {
  await using site = await startSite();
  await using receiver = await startReceiver();
  await using app = await startApp();
  const crawler = await createCrawler(app, 'busy', {
    callback_url: receiver.url,
    max_retries: 0,
    concurrency: 5,
  });
  const paths = ['page/1?delay=5', 'status/503', 'status/404', 'empty', 'page/2?delay=20'];
  const items = Array.from({ length: 300 }, (_, n) => ({ url: `${site.url}/${paths[n % 5]}` }));
  let looks = 0;
  const looking = (async () => {
    for (;;) {
      const { activity } = await crawler.details();
      expect(balance(activity)).toBe(activity.pushed);
      expect(activity.running).toBeLessThanOrEqual(5);
      looks += 1;
      if (activity.pushed === 600 && balance(activity) === 600 && activity.waiting === 0) {
        if (activity.running === 0) return;
      }
    }
  })();
  const batch = await crawler.post('push_batch', { items });
  const rids = batch.json.results.map((result: { rid: string }) => result.rid) as string[];
  const ends = await Promise.all(
    rids.slice(-20).map((rid) => crawler.post(`delete_job?rid=${rid}`)),
  );
  const deleted = ends.filter((reply) => reply.status === 200).length;
  expect(deleted).toBeGreaterThan(0);
  await crawler.post('pause');
  await crawler.post('push_batch', { items });
  const purged = (await crawler.post('purge')).json.purged as number;
  await crawler.post('unpause');
  await looking;
  expect(looks).toBeGreaterThan(3);

  const { activity } = await crawler.details();
  expect(activity).toMatchObject({ pushed: 600, deleted, purged });
  await eventually(async () =>
    expect((await crawler.details()).activity.deliveries_pending).toBe(0),
  );
  const stats = (await app.rest('GET', `/crawler/${NORMAL}/stats`)).json;
  expect(sumDays(stats.history)).toMatchObject({
    pushed: 600,
    success: activity.completed,
    failed: activity.failed,
    deleted,
    purged,
    deliveries: activity.completed + activity.failed,
  });
  const byStatus = (stats.history as { by_cb_status: Record<string, number> }[]).flatMap((day) =>
    Object.values(day.by_cb_status),
  );
  expect(byStatus.reduce((sum, count) => sum + count, 0)).toBe(
    activity.completed + activity.failed,
  );
  expect(stats).toMatchObject({
    concurrency: { limit: 5, running: 0 },
    queue: { waiting: 0, retrying: 0 },
    completed: activity.completed,
    failed: activity.failed,
  });
});

test('history is by day, its bounds inclusive; bad dates are refused', async () => {
  const clock = createTestClock();
  await using site = await startSite();
  await using app = await startApp({ clock });
  const crawler = await createCrawler(app, 'days');
  const days: string[] = [];
  for (const n of [1, 2, 3]) {
    if (n > 1) clock.advance(DAY);
    days.push(toDay(clock.now()));
    await crawler.stored(await crawler.push(`${site.url}/page/${n}`));
  }
  const read = (query: string) => app.rest('GET', `/crawler/${NORMAL}/stats?${query}`);
  const all = (await read('')).json;
  expect(all.history.map((day: { date: string }) => day.date)).toEqual(days);
  expect(all.completed).toBe(3);
  const two = (await read(`history_from=${days[1]}&history_to=${days[2]}`)).json;
  expect(two.history.map((day: { date: string }) => day.date)).toEqual(days.slice(1));
  expect(two.completed).toBe(2);
  expect((await read(`history_to=${days[0]}`)).json.completed).toBe(1);
  for (const [query, field] of [
    ['history_from=yesterday', 'history_from'],
    ['history_to=2026-02-30', 'history_to'],
    ['history_from=2026-01-02&history_to=2026-01-01', 'history_from'],
  ]) {
    const refused = await read(query ?? '');
    expect([query, refused.status, refused.json.field]).toEqual([query, 422, field]);
  }
  const own = async (query: string): Promise<number> =>
    (await read(query)).json.crawlers[0].history.length;
  expect(await own('history_of=days')).toBe(3);
  expect(await own('without_crawler_history=true')).toBe(0);
  expect(await read('history_of=nobody')).toMatchObject({
    status: 404,
    json: { field: 'history_of' },
  });
  await crawler.post('delete');
  expect((await read('')).json).toMatchObject({ crawlers: [], history: [], completed: 0 });
});
