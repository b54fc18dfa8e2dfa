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

/**
 * Kills a process that crawls. Its heir continues the crawler; returns whether it did so because it
 * saw the end of the other. A heir that gets no processor for seconds finds a lease that has lapsed.
 */
async function isInherited(heir: 'another that runs' | 'one that starts after it') {
  await using database = testDatabase();
  await using site = await openChaosSite();
  const env = { MONGODB_URI: database.uri };
  await using killed = await startProcess(env);
  await keepBusy(killed, site.page('slow', 1, 60_000, 0));
  const started = heir === 'another that runs' ? await startProcess(env) : undefined;
  await killed.kill9();
  await using service = started ?? (await startProcess(env));
  await eventually(async () => {
    const { running, processes } = await readCrawler(service);
    expect(running).toBe(1);
    expect(processes).toHaveLength(1);
    expect(processes[0]?.id).toContain(`:${service.process.pid}:`);
  });
  await eventually(async () => expect(await processesAt(service)).toHaveLength(1));
  const says = () => expect(service.output).toContain('ended before it gave its crawlers back');
  return await eventually(says, { timeoutMs: 5_000 }).then(
    () => true,
    () => false,
  );
}

describe.skipIf(mongodbUri === '' || process.platform !== 'linux')(
  'a process that is killed leaves its crawlers',
  () => {
    for (const heir of ['another that runs', 'one that starts after it'] as const) {
      test(`to ${heir} on its machine, at once`, async () => {
        let inherited = false;
        for (let tried = 0; tried < 3 && !inherited; tried += 1)
          inherited = await isInherited(heir);
        expect(inherited).toBe(true);
      });
    }
  },
);

async function processesAt(service: ServiceProcess): Promise<readonly unknown[]> {
  const admin = { authorization: `Bearer ${ADMIN}` };
  const { json } = await callRest(`${service.url}/installation`, 'GET', undefined, admin);
  return (json as { readonly processes: readonly unknown[] }).processes;
}
