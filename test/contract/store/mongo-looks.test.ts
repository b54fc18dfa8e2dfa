import { performance } from 'node:perf_hooks';
import { describe, expect, test, vi } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import type { Lease, Store } from '../../../src/store/store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { at, createBench, makeJobs } from './store-harness.ts';

const HOSTS = 60;

/** Looks through all hosts, one job of each. Returns the hosts that each look has found. */
async function lookThrough(store: Store, lease: Lease): Promise<string[][]> {
  const found: string[][] = [];
  for (let after = ''; found.length <= HOSTS; ) {
    const hosts = { perHost: 1, rest: 0, after, closed: [], full: found.flat() };
    const receipt = await store.queue.turn(lease, { look: { limit: 1_000, hosts } }, at(10));
    found.push(receipt.jobs.map(({ host }) => host));
    if (receipt.seesAllHosts === true) return found;
    expect(receipt.hasMore).toBe(true);
    after = receipt.lastHost ?? '';
  }
  throw new Error('the looks have no end');
}

const hostOf = (n: number): string => `h${String(n).padStart(3, '0')}.example`;

/** A store with a crawler, and the number of its reads of jobs so far. */
async function openStore() {
  const database = testDatabase();
  const uri = `${database.uri}?monitorCommands=true`;
  const { store, db } = await openMongoStore({ uri, logger: silentLogger });
  const bench = createBench({ store });
  const made = await bench.crawler();
  let reads = 0;
  db.client.on('commandStarted', ({ command }) => {
    if (command.aggregate === 'jobs' || command.find === 'jobs') reads += 1;
  });
  return {
    store,
    bench,
    made,
    reads: () => reads,
    jobsOf: (host: string, count: number) =>
      makeJobs(made, count, { url: `http://${host}/`, createdAt: at(0) }),
    async [Symbol.asyncDispose]() {
      await store.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(mongodbUri === '')('on MongoDB', () => {
  test('the first look reads hosts that this process has pushed with few commands', async () => {
    await using opened = await openStore();
    const { store, bench, made, jobsOf, reads } = opened;
    const hosts = Array.from({ length: HOSTS }, (_, n) => hostOf(n));
    await bench.push(hosts.flatMap((host) => jobsOf(host, 3)));
    const lease = await bench.lease(made, at(10));
    const before = reads();
    expect((await lookThrough(store, lease)).flat()).toEqual(hosts);
    expect(reads() - before).toBeLessThanOrEqual(HOSTS / 4);
  });

  test('a look at a slow server returns with what it has found, and the next one continues', async () => {
    await using opened = await openStore();
    const { store, bench, made, jobsOf } = opened;
    const hosts = Array.from({ length: HOSTS }, (_, n) => hostOf(n));
    for (const host of hosts) await bench.push(jobsOf(host, 3));
    const lease = await bench.lease(made, at(10));
    let laterMs = 0;
    const now = performance.now.bind(performance);
    // As if each question took a second.
    vi.spyOn(performance, 'now').mockImplementation(() => {
      laterMs += 1_000;
      return now() + laterMs;
    });
    try {
      const found = await lookThrough(store, lease);
      expect(found.length).toBeGreaterThan(1);
      expect(found.flat()).toEqual(hosts);
    } finally {
      vi.restoreAllMocks();
    }
  });

  test('a look reads hosts that are known with few commands, and finds the others', async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const made = await bench.crawler();
    const pushHost = (host: string, count: number) =>
      bench.push(makeJobs(made, count, { url: `http://${host}/`, createdAt: at(0) }));
    const hosts = Array.from({ length: HOSTS }, (_, n) => hostOf(2 * n));
    for (const host of hosts) await pushHost(host, 3);
    const lease = await bench.lease(made, at(10));
    expect((await lookThrough(store, lease)).flat()).toEqual(hosts);

    let reads = 0;
    db.client.on('commandStarted', ({ command }) => {
      if (command.aggregate === 'jobs' || command.find === 'jobs') reads += 1;
    });
    expect((await lookThrough(store, lease)).flat()).toEqual(hosts);
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(HOSTS / 4);

    // Hosts that came since, with more jobs than a command reads of one range.
    const others = [hostOf(0).slice(0, 2), ...[1, 5, 99, 200, 201].map(hostOf)];
    for (const host of others) await pushHost(host, 5);
    const all = [...hosts, ...others].toSorted();
    expect((await lookThrough(store, lease)).flat()).toEqual(all);
    await store.queue.purge(made.crawlerId, at(11));
    await pushHost(hostOf(7), 1);
    expect((await lookThrough(store, lease)).flat()).toEqual([hostOf(7)]);
  });
});
