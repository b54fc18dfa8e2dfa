import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { callRest } from '../support/call-rest.ts';
import { openChaosSite } from '../support/chaos/chaos-site.ts';
import { eventually } from '../support/eventually.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type ServiceProcess, startProcess } from '../support/service-process.ts';
import { ADMIN, NORMAL } from '../support/tokens.ts';

const CRAWLER = `/crawler/${NORMAL}/slow`;

/** Makes a crawler whose one URL takes longer than the test, and waits until it is crawled. */
async function keepBusy(service: ServiceProcess, url: string): Promise<void> {
  await service.rest('POST', `/crawler/${NORMAL}`, { name: 'slow', concurrency: 1 });
  const pushed = await service.rest('POST', `${CRAWLER}/push_batch`, { items: [{ url }] });
  expect(pushed.status).toBe(200);
  await eventually(async () => expect(await readCrawler(service)).toMatchObject({ running: 1 }));
}

async function readCrawler(service: ServiceProcess) {
  const { activity, processes } = (await service.rest('GET', CRAWLER)).json as {
    readonly activity: { readonly running: number };
    readonly processes: readonly { readonly id: string }[];
  };
  return { ...activity, processes };
}

/** Makes the leases of a database an hour long, however long it takes until another process sees them. */
async function lengthenLeases(uri: string): Promise<void> {
  await using client = new MongoClient(uri);
  const leaseUntil = new Date(Date.now() + 3_600_000);
  const crawlers = client.db().collection('crawlers');
  const leased = { leaseOwner: { $ne: null } };
  const { matchedCount } = await crawlers.updateMany(leased, {
    $set: { leaseUntil, wakeAt: leaseUntil },
  });
  expect(matchedCount).toBe(1);
}

describe.skipIf(mongodbUri === '' || process.platform !== 'linux')(
  'a process that is killed leaves its crawlers',
  () => {
    test.each([
      ['another that runs', true],
      ['one that starts after it', false],
    ])('to %s on its machine, before its lease ends', async (_, runsBefore) => {
      await using database = testDatabase();
      await using site = await openChaosSite();
      const env = { MONGODB_URI: database.uri };
      await using killed = await startProcess(env);
      await keepBusy(killed, site.page('slow', 1, 60_000, 0));
      const early = runsBefore ? await startProcess(env) : undefined;
      // It renews no lease from now on.
      killed.process.kill('SIGSTOP');
      await lengthenLeases(database.uri);
      await killed.kill9();
      await using heir = early ?? (await startProcess(env));
      await eventually(async () => {
        const { running, processes } = await readCrawler(heir);
        expect(running).toBe(1);
        expect(processes).toHaveLength(1);
        expect(processes[0]?.id).toContain(`:${heir.process.pid}:`);
      });
      await eventually(async () => expect(await processesAt(heir)).toHaveLength(1));
      await eventually(() =>
        expect(heir.output).toContain('ended before it gave its crawlers back'),
      );
    });
  },
);

async function processesAt(service: ServiceProcess): Promise<readonly unknown[]> {
  const admin = { authorization: `Bearer ${ADMIN}` };
  const { json } = await callRest(`${service.url}/installation`, 'GET', undefined, admin);
  return (json as { readonly processes: readonly unknown[] }).processes;
}
