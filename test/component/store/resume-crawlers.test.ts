import { expect, test } from 'vitest';
import { resumeCrawlers } from '../../../src/service/tasks.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { at, claimJobs, createBench, makeJobs } from '../../contract/store/store-harness.ts';
import { silentLogger } from '../../support/loggers.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a process that starts wakes the crawlers that the last one has left work of, also where it held them', async () => {
  await using folder = await temporaryFolder();
  const open = () => openSqliteStore({ dataDir: folder.path, logger: silentLogger });
  const last = await open();
  const bench = createBench({ store: last.store });
  const held = await bench.crawler();
  const waiting = await bench.crawler({ name: 'waiting' });
  await bench.crawler({ name: 'idle' });
  await bench.push(makeJobs(held, 2), at(0));
  await bench.push(makeJobs(waiting, 1), at(0));
  await claimJobs(last.store, await bench.lease(held, at(0)), 2, at(0));
  // As a process that is killed: it gives nothing back.
  await last.store.close();

  const { store } = await open();
  const woken: string[] = [];
  const scheduler = {
    wake: async (name: string, key: string) => void woken.push(`${name} ${key}`),
  };
  await resumeCrawlers({ store, scheduler, clock: { now: () => at(1) } });
  await store.close();
  expect(woken.toSorted()).toEqual(
    [`crawl ${held.crawlerId}`, `crawl ${waiting.crawlerId}`].toSorted(),
  );
});
