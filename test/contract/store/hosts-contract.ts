import { describe, expect, test } from 'vitest';
import type { HostState } from '../../../src/domain/host-state.ts';
import type { Job } from '../../../src/domain/job.ts';
import { eventually } from '../../support/eventually.ts';
import { at, makeJobs, type OpenStore, withStore } from './store-harness.ts';

const onHost = (host: string): Partial<Job> => ({ url: `https://${host}/page` });

function state(host: string, tries: number): HostState {
  return {
    host,
    running: 0,
    tries,
    tookMs: 9,
    failures: { timeout: 1 },
    perSecond: 0.5,
    lastMs: 1,
  };
}

/** What is known of hosts, and the queue by host. */
export function hostsContract(open: OpenStore): void {
  describe('hosts', () => {
    test(
      'are counted in the queue, those with the most jobs first',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler();
        const other = await crawler();
        await push(makeJobs(made, 3, onHost('b.example')));
        await push(makeJobs(made, 5, { ...onHost('a.example'), createdAt: at(1) }), at(1));
        await push(makeJobs(made, 1, onHost('c.example')), at(2));
        await push(makeJobs(other, 7, onHost('d.example')));
        expect(await store.hosts.longest(made.crawlerId, 2)).toEqual({
          hosts: [
            { host: 'a.example', queued: 5, nextDueAt: at(1) },
            { host: 'b.example', queued: 3, nextDueAt: at(0) },
          ],
          total: 3,
        });
        await store.queue.purge(made.crawlerId, at(3));
        expect(await store.hosts.longest(made.crawlerId, 2)).toEqual({ hosts: [], total: 0 });
        expect(await store.hosts.longest('0'.repeat(24), 2)).toEqual({ hosts: [], total: 0 });
      }),
    );

    test(
      'are counted in full when one has more jobs than are read at once',
      withStore(open, async ({ store, crawler, push }) => {
        const made = await crawler();
        const limits = { crawlerQueue: 1e6, accountQueue: 1e6 };
        const { crawlerId, accountId } = made;
        const add = async (host: string, jobs: number, at_: Date) => {
          for (let left = jobs; left > 0; left -= 1_000) {
            const more = makeJobs(made, Math.min(left, 1_000), { ...onHost(host), createdAt: at_ });
            await store.queue.push({ crawlerId, accountId, jobs: more }, limits, at_);
          }
        };
        await add('a.example', 2, at(5));
        await add('b.example', 10_001, at(3));
        await add('c.example', 3, at(4));
        await push(makeJobs(made, 1, onHost('b.example')), at(0));
        expect(await store.hosts.longest(crawlerId, 2)).toEqual({
          hosts: [
            { host: 'b.example', queued: 10_002, nextDueAt: at(0) },
            { host: 'c.example', queued: 3, nextDueAt: at(4) },
          ],
          total: 3,
        });
      }),
    );

    test(
      'are purged one at a time, in parts, with all counters',
      withStore(open, async ({ store, crawler, push, counters }) => {
        const made = await crawler();
        const { crawlerId, accountId } = made;
        await push(makeJobs(made, 5, onHost('a.example')));
        await push(makeJobs(made, 2, onHost('b.example')));
        expect(await store.hosts.purge(crawlerId, 'a.example', 3, at(1))).toBe(3);
        expect(await store.hosts.purge(crawlerId, 'a.example', 3, at(1))).toBe(2);
        expect(await store.hosts.purge(crawlerId, 'a.example', 3, at(1))).toBe(0);
        expect(await counters(made)).toMatchObject({ waiting: 2, purged: 5, pushed: 7 });
        expect((await store.accounts.usage(accountId))?.queued).toBe(2);
        const { rows } = await store.listings.jobs(crawlerId, undefined, { limit: 9 });
        expect(rows).toHaveLength(2);
        const days = (await store.stats.history([crawlerId], {})).get(crawlerId);
        expect(days).toMatchObject([{ pushed: 7, purged: 5 }]);
      }),
    );

    test(
      'that are being crawled are not purged',
      withStore(open, async ({ store, crawler, running, counters }) => {
        const made = await crawler();
        await running(made, 2);
        expect(await store.hosts.purge(made.crawlerId, 'example.com', 9, at(1))).toBe(0);
        expect(await counters(made)).toMatchObject({ running: 2, purged: 0 });
      }),
    );

    test(
      'are remembered as their process last saved them, until the crawler is removed',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler();
        const report = { crawlerId, processId: 'one' };
        await store.hosts.save([{ ...report, hosts: [state('a.example', 1)] }], new Date());
        await store.hosts.save([{ ...report, hosts: [state('a.example', 2)] }], new Date());
        const saved = [{ ...report, hosts: [state('a.example', 2)] }];
        expect(await store.hosts.reports(crawlerId)).toEqual(saved);
        expect(await store.hosts.reports('0'.repeat(24))).toEqual([]);
        await store.crawlers.remove(crawlerId);
        await eventually(async () => {
          await store.maintain(at(1));
          expect(await store.hosts.reports(crawlerId)).toEqual([]);
        });
      }),
    );

    test(
      'are paused and continued once',
      withStore(open, async ({ store, crawler }) => {
        const { crawlerId } = await crawler();
        const set = (host: string, paused: boolean) =>
          store.crawlers.setHostPaused(crawlerId, host, paused, at(1));
        expect(await set('a.example', true)).toMatchObject({ changed: true });
        expect(await set('a.example', true)).toMatchObject({ changed: false });
        await Promise.all(['b.example', 'c.example'].map((host) => set(host, true)));
        expect((await store.crawlers.get(crawlerId))?.pausedHosts?.toSorted()).toEqual([
          'a.example',
          'b.example',
          'c.example',
        ]);
        await Promise.all(['a.example', 'b.example'].map((host) => set(host, false)));
        expect(await set('a.example', false)).toMatchObject({ changed: false });
        const after = await store.crawlers.get(crawlerId);
        expect(after).toMatchObject({ pausedHosts: ['c.example'] });
        await set('c.example', false);
        expect(await store.crawlers.get(crawlerId)).not.toHaveProperty('pausedHosts');
        expect(
          await store.crawlers.setHostPaused('0'.repeat(24), 'a.example', true, at(1)),
        ).toBeUndefined();
      }),
    );
  });
}
