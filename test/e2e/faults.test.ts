import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { NORMAL } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { byLength, isLong } from '../support/length.ts';
import { type Mongod, mongodProgram, startMongod } from '../support/mongod.ts';
import { mongodbUri, testDatabase } from '../support/mongodb.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { seededNoise } from '../support/seed.ts';
import { readMetric, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { startSite } from '../support/site.ts';

const CRAWLERS = ['store', 'hook', 'other'];

/** Makes one storage and two webhook crawlers. */
async function makeCrawlers(service: ServiceProcess, receiver: Receiver): Promise<void> {
  for (const name of CRAWLERS) {
    const callback = name === 'store' ? {} : { callback_url: receiver.url };
    const made = await service.rest('POST', `/crawler/${NORMAL}`, { name, ...callback });
    expect(made.status).toBe(200);
  }
}

/** What clients were told: every `rid` they hold, by crawler. */
type Acknowledged = Map<string, Set<string>>;

/** A load of pushes. */
interface Load {
  readonly acknowledged: Acknowledged;
  /** Statuses of the pushes that were refused. */
  readonly refusals: readonly number[];
  readonly done: Promise<void>;
  /** Resolves when that share of the pushes (0 to 1) is acknowledged. */
  until(share: number): Promise<void>;
  stop(): Promise<void>;
}

const BATCH = 10;

/** Pushes batches until stopped, to one service after the other; a failed push is repeated with its `request_id`. */
function pushUnderLoad(
  services: () => ServiceProcess[],
  site: string,
  { batches, pageMs = 2 }: { readonly batches: number; readonly pageMs?: number },
): Load {
  const acknowledged: Acknowledged = new Map(CRAWLERS.map((name) => [name, new Set()]));
  const refusals: number[] = [];
  let stopped = false;
  async function pushBatch(name: string, batch: number): Promise<void> {
    const items = Array.from({ length: BATCH }, (_, n) => ({
      url: `${site}/page/${name}-${batch}-${n}?delay=${pageMs}`,
    }));
    let attempt = 0;
    await eventually(
      async () => {
        const all = services();
        const service = all[(batch + attempt) % all.length];
        attempt += 1;
        const path = `/crawler/${NORMAL}/${name}/push_batch`;
        const body = { items, request_id: `${name}-${batch}` };
        const reply = await service?.rest('POST', path, body).catch(() => undefined);
        if (reply?.status === 200) {
          for (const { rid } of reply.json.results) acknowledged.get(name)?.add(rid);
          return;
        }
        if (reply !== undefined) refusals.push(reply.status);
        if (!stopped) throw new Error(`refused: ${reply?.status}`);
      },
      { what: 'an acknowledged push' },
    );
  }
  async function client(name: string): Promise<void> {
    for (let batch = 0; batch < batches && !stopped; batch++) await pushBatch(name, batch);
  }
  const done = Promise.all(CRAWLERS.map(client)).then(() => undefined);
  return {
    acknowledged,
    refusals,
    done,
    async until(share) {
      const wanted = share * batches * BATCH * CRAWLERS.length;
      await eventually(() => {
        const seen = [...acknowledged.values()].reduce((sum, rids) => sum + rids.size, 0);
        expect(seen).toBeGreaterThanOrEqual(wanted);
      });
    },
    async stop() {
      stopped = true;
      await done;
    },
  };
}

/** Random parts of a load between a tenth and nine tenths, ascending: when something is killed. */
function killPoints(count: number): number[] {
  const noise = seededNoise('kill points');
  return Array.from({ length: count }, () => (100 + noise.int(800)) / 1_000).toSorted(
    (a, b) => a - b,
  );
}

/** Deletes acknowledged jobs of one crawler and purges another whenever more are acknowledged; what is lost with a process is not repeated. */
function removeUnderLoad(services: () => ServiceProcess[], { acknowledged, done: pushed }: Load) {
  let stopped = false;
  void pushed.then(() => {
    stopped = true;
  });
  const stored = () => [...(acknowledged.get('store') ?? [])];
  const done = (async () => {
    for (let n = 0, seen = 0; !stopped; n++) {
      await eventually(() => expect(stopped || stored().length > seen).toBe(true));
      seen = stored().length;
      const all = services();
      const service = all[n % all.length];
      const rids = stored().slice(-5);
      const paths = rids.map((rid) => `store/delete_job?rid=${rid}`);
      if (n % 5 === 0) paths.push('other/purge');
      await Promise.all(
        paths.map(async (path) =>
          service?.rest('POST', `/crawler/${NORMAL}/${path}`).catch(() => undefined),
        ),
      );
    }
  })();
  return { done };
}

async function stats(service: ServiceProcess) {
  const { json } = await service.rest('GET', `/crawler/${NORMAL}/stats`);
  return json;
}

/** Waits until everything has ended, and holds what clients were told against what they got. */
async function expectBalance(
  service: ServiceProcess,
  receiver: Receiver,
  acknowledged: Acknowledged,
): Promise<void> {
  await eventually(async () => {
    const { queue, concurrency, crawlers } = await stats(service);
    expect({ queue, running: concurrency.running }).toMatchObject({
      queue: { waiting: 0, retrying: 0 },
      running: 0,
    });
    for (const { activity } of crawlers) {
      const { pushed, completed, failed, deleted, purged } = activity;
      expect(completed + failed + deleted + purged).toBe(pushed);
      expect(activity.deliveries_pending).toBe(0);
    }
  });
  const rids = await service.rest('GET', `/storage/rids?token=${NORMAL}&limit=10000`);
  const stored = new Set<string>(rids.json);
  for (const { name, activity } of (await stats(service)).crawlers) {
    const posts = receiver.deliveries.filter((post) =>
      post.headers.url?.includes(`/page/${name}-`),
    );
    const arrived = name === 'store' ? stored : new Set(posts.map((post) => post.rid));
    const { pushed, deleted, purged } = activity;
    expect(arrived.size + deleted + purged).toBe(pushed);
    const missing = [...(acknowledged.get(name) ?? [])].filter((rid) => !arrived.has(rid));
    expect(missing.length).toBeLessThanOrEqual(deleted + purged);
  }
}

describe.skipIf(mongodbUri === '')('on MongoDB', () => {
  test.runIf(isLong)(
    'processes killed with -9 one after the other, while others run, lose nothing',
    async () => {
      await using database = testDatabase();
      await using receiver = await startReceiver();
      await using site = await startSite();
      const env = { MONGODB_URI: database.uri };
      const services = await Promise.all([startProcess(env), startProcess(env)]);
      try {
        await makeCrawlers(services[0], receiver);
        const load = pushUnderLoad(() => services, site.url, { batches: byLength(20, 60) });
        for (const [kill, point] of killPoints(byLength(2, 5)).entries()) {
          await load.until(point);
          const victim = kill % services.length;
          await services[victim]?.kill9();
          services[victim] = await startProcess(env);
        }
        await load.done;
        await expectBalance(services[0], receiver, load.acknowledged);
        // Each process adds up the bytes of its accounts once a minute.
        await eventually(async () => {
          const [a, b] = await Promise.all(services.slice(0, 2).map(stats));
          expect({ ...b, stored: undefined }).toEqual({ ...a, stored: undefined });
        });
      } finally {
        await Promise.all(services.map((service) => service.kill9()));
      }
    },
  );

  test.runIf(isLong)(
    'removals while processes are killed with -9 are counted for what they were',
    async () => {
      await using database = testDatabase();
      await using receiver = await startReceiver();
      await using site = await startSite();
      const env = { MONGODB_URI: database.uri, DEFAULT_CONCURRENCY: '2' };
      const services = await Promise.all([startProcess(env), startProcess(env)]);
      try {
        await makeCrawlers(services[0], receiver);
        const batches = byLength(20, 60);
        const load = pushUnderLoad(() => services, site.url, { batches, pageMs: 10 });
        const removals = removeUnderLoad(() => services, load);
        for (const [kill, point] of killPoints(byLength(2, 4)).entries()) {
          await load.until(point);
          const victim = kill % services.length;
          await services[victim]?.kill9();
          services[victim] = await startProcess(env);
        }
        await load.done;
        await removals.done;
        await expectBalance(services[0], receiver, load.acknowledged);
        const { crawlers } = await stats(services[0]);
        const sum = (field: string) =>
          crawlers.reduce(
            (all: number, each: { activity: Record<string, number> }) =>
              all + (each.activity[field] ?? 0),
            0,
          );
        expect(sum('deleted')).toBeGreaterThan(0);
        expect(sum('purged')).toBeGreaterThan(0);
      } finally {
        await Promise.all(services.map((service) => service.kill9()));
      }
    },
  );

  test.runIf(isLong)('all processes killed at once lose nothing', async () => {
    await using database = testDatabase();
    await using receiver = await startReceiver();
    await using site = await startSite();
    const env = { MONGODB_URI: database.uri };
    let services = await Promise.all([startProcess(env), startProcess(env)]);
    try {
      await makeCrawlers(services[0], receiver);
      const load = pushUnderLoad(() => services, site.url, { batches: byLength(15, 40) });
      for (const point of killPoints(byLength(1, 2))) {
        await load.until(point);
        await Promise.all(services.map((service) => service.kill9()));
        services = await Promise.all([startProcess(env), startProcess(env)]);
      }
      await load.done;
      await expectBalance(services[0], receiver, load.acknowledged);
    } finally {
      await Promise.all(services.map((service) => service.kill9()));
    }
  });

  test.runIf(isLong)(
    'a process stopped beyond its leases finishes nothing that others took over',
    async () => {
      await using database = testDatabase();
      await using receiver = await startReceiver();
      await using site = await startSite();
      const env = { MONGODB_URI: database.uri };
      await using sleeper = await startProcess(env);
      await makeCrawlers(sleeper, receiver);
      const load = pushUnderLoad(() => [sleeper], site.url, { batches: 30 });
      await eventually(() => expect(receiver.deliveries.length).toBeGreaterThan(50));
      await load.stop();
      await using other = await startProcess(env);
      await sleeper.rest('POST', `/crawler/${NORMAL}/hook/push_batch`, {
        items: Array.from({ length: 200 }, (_, n) => ({
          url: `${site.url}/page/hook-late-${n}?delay=50`,
        })),
      });
      await eventually(() => expect(site.concurrent).toBeGreaterThan(5));
      sleeper.process.kill('SIGSTOP');
      try {
        // The leases lapse and the other takes over.
        await eventually(async () => {
          const { queue, concurrency } = await stats(other);
          expect(queue.waiting + queue.retrying + concurrency.running).toBe(0);
        });
      } finally {
        sleeper.process.kill('SIGCONT');
      }
      const before = await stats(other);
      // Awake again, it finds that it has lost what it had begun.
      await eventually(async () =>
        expect(await readMetric(sleeper, 'queued_crawler_active', 'kind="crawls"')).toBe(0),
      );
      await expectBalance(other, receiver, load.acknowledged);
      const after = await stats(sleeper);
      expect(after).toMatchObject({ completed: before.completed, failed: before.failed });
    },
  );

  test('SIGTERM under load ends the process, and nothing is lost or crawled twice', async () => {
    await using database = testDatabase();
    await using receiver = await startReceiver();
    await using site = await startSite();
    // On a busy machine the receiver may take longer than usual, and would be posted to again.
    const patience = { WEBHOOK_ACK_TIMEOUT_MS: '5000' };
    const env = { MONGODB_URI: database.uri, SHUTDOWN_SECONDS: '10', ...patience };
    const services = await Promise.all([startProcess(env), startProcess(env)]);
    try {
      await makeCrawlers(services[0], receiver);
      const batches = byLength(6, 40);
      const load = pushUnderLoad(() => services, site.url, { batches });
      for (const [round, point] of killPoints(byLength(1, 4)).entries()) {
        await load.until(point);
        expect(await services[round % 2]?.terminate()).toBe(0);
        services[round % 2] = await startProcess(env);
      }
      await load.done;
      await expectBalance(services[0], receiver, load.acknowledged);
      expect(site.hits()).toBe(batches * BATCH * CRAWLERS.length);
      expect(receiver.deliveries).toHaveLength(batches * BATCH * 2);
    } finally {
      await Promise.all(services.map((service) => service.kill9()));
    }
  });
});

const program = mongodProgram();

describe.skipIf(program === undefined)('with a MongoDB of its own', () => {
  test('a database killed with -9 under load is waited for: 503 while it is down, nothing acknowledged is lost', async () => {
    await using mongod: Mongod = await startMongod(program ?? '');
    await using receiver = await startReceiver();
    await using site = await startSite();
    const env = { MONGODB_URI: `${mongod.uri}/faults` };
    const services = await Promise.all([startProcess(env), startProcess(env)]);
    const first = services[0];
    try {
      await makeCrawlers(first, receiver);
      const load = pushUnderLoad(() => services, site.url, { batches: byLength(6, 40) });
      for (const point of killPoints(byLength(1, 2))) {
        await load.until(point);
        await mongod.kill();
        const push = `/?token=${NORMAL}&crawler=store&callback=true&url=${encodeURIComponent(site.url)}`;
        const refused = await first.rest('GET', push);
        expect(refused.status).toBe(503);
        expect(refused.json).toMatchObject({ code: 'database_unavailable' });
        expect((await first.rest('GET', '/readyz')).status).toBe(503);
        expect((await first.rest('GET', '/healthz')).status).toBe(200);
        await mongod.start();
      }
      await load.done;
      // None, if the load had ended just before.
      expect(
        load.refusals.filter((status) => status !== 503),
        services.map((each) => each.errors + each.output).join(''),
      ).toEqual([]);
      await expectBalance(first, receiver, load.acknowledged);
    } finally {
      await Promise.all(services.map((service) => service.kill9()));
    }
  });

  test('a push into a database that answers nothing is answered within half a minute', async () => {
    await using mongod: Mongod = await startMongod(program ?? '');
    await using service = await startProcess({ MONGODB_URI: `${mongod.uri}/hanging` });
    await service.rest('POST', `/crawler/${NORMAL}`, { name: 'store' });
    const push = `/?token=${NORMAL}&crawler=store&callback=true&url=${encodeURIComponent('http://a.example/')}`;
    expect((await service.rest('GET', push)).status).toBe(200);
    mongod.suspend();
    try {
      const answer = fetch(`${service.url}${push}`, { signal: AbortSignal.timeout(30_000) });
      expect((await answer).status).toBe(503);
    } finally {
      mongod.resume();
    }
    await eventually(async () => {
      expect((await service.rest('GET', push)).status).toBe(200);
    });
  });

  test('a database that answers nothing does not hold up the stop, and what was taken in is crawled later', async () => {
    await using mongod: Mongod = await startMongod(program ?? '');
    await using receiver = await startReceiver();
    await using site = await startSite();
    const env = { MONGODB_URI: `${mongod.uri}/silent`, SHUTDOWN_SECONDS: '2' };
    await using service = await startProcess(env);
    await makeCrawlers(service, receiver);
    const load = pushUnderLoad(() => [service], site.url, { batches: 5, pageMs: 200 });
    await load.done;
    mongod.suspend();
    try {
      const inTime = () => ({ signal: AbortSignal.timeout(8_000) });
      const [ready, metrics] = await Promise.all([
        fetch(`${service.url}/readyz`, inTime()),
        fetch(`${service.url}/metrics`, inTime()),
      ]);
      expect(ready.status).toBe(503);
      expect(await metrics.text()).toMatch(/^queued_crawler_database_up 0$/m);
      // Far longer than the stop may take, and far shorter than the driver waits for an answer.
      const late = wait(15_000, 'still there', { ref: false });
      expect(await Promise.race([service.terminate(), late])).toBe(0);
    } finally {
      mongod.resume();
    }
    expect(service.output).toContain('stopping took too long');
    await using next = await startProcess(env);
    await expectBalance(next, receiver, load.acknowledged);
  });
});
