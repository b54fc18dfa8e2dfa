import { describe, expect, test } from 'vitest';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import type { Lease, Store } from '../../../src/store/store.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { at, createBench, makeJobs } from './store-harness.ts';

const HOSTS = 60;

/** Looks through all hosts, one job of each. Returns the hosts that it has found. */
async function lookThrough(store: Store, lease: Lease): Promise<string[]> {
  const hosts = { perHost: 1, rest: 0, after: '', closed: [], full: [] };
  const receipt = await store.queue.turn(lease, { look: { limit: 1_000, hosts } }, at(10));
  expect(receipt.seesAllHosts).toBe(true);
  return receipt.jobs.map(({ host }) => host).toSorted();
}

describe.skipIf(mongodbUri === '')('on MongoDB', () => {
  test('a look reads hosts that are known with few commands, and finds the others', async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    const bench = createBench({ store });
    const made = await bench.crawler();
    const hostOf = (n: number): string => `h${String(n).padStart(3, '0')}.example`;
    const pushHost = (host: string, count: number) =>
      bench.push(makeJobs(made, count, { url: `http://${host}/`, createdAt: at(0) }));
    const hosts = Array.from({ length: HOSTS }, (_, n) => hostOf(2 * n));
    for (const host of hosts) await pushHost(host, 3);
    const lease = await bench.lease(made, at(10));
    expect(await lookThrough(store, lease)).toEqual(hosts);

    let reads = 0;
    db.client.on('commandStarted', ({ command }) => {
      if (command.aggregate === 'jobs' || command.find === 'jobs') reads += 1;
    });
    expect(await lookThrough(store, lease)).toEqual(hosts);
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThanOrEqual(5);

    // Hosts that came since, with more jobs than a command reads of one range.
    const others = [hostOf(0).slice(0, 2), ...[1, 5, 99, 200, 201].map(hostOf)];
    for (const host of others) await pushHost(host, 5);
    const all = [...hosts, ...others].toSorted();
    expect(await lookThrough(store, lease)).toEqual(all);
    await store.queue.purge(made.crawlerId, at(11));
    await pushHost(hostOf(7), 1);
    expect(await lookThrough(store, lease)).toEqual([hostOf(7)]);
  });
});
