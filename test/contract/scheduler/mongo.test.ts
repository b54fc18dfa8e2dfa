import { randomUUID } from 'node:crypto';
import { type Document, MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { createMongoBackend, TASK_COLLECTION } from '../../../src/scheduler/mongo/backend.ts';
import { eventually } from '../../support/eventually.ts';
import { mongodbUri as uri } from '../../support/mongodb.ts';
import { schedulerContract } from './scheduler-contract.ts';
import { openHarness, type SchedulerDatabase } from './scheduler-harness.ts';
import { tasksContract } from './tasks-contract.ts';

async function open(): Promise<SchedulerDatabase> {
  const client = await MongoClient.connect(uri);
  const db = client.db(`scheduler-${randomUUID()}`);
  return {
    backend: () => createMongoBackend(db),
    async close() {
      await db.dropDatabase();
      await client.close();
    },
  };
}

describe.skipIf(uri === '')('with a MongoDB server', () => {
  for (const contract of [schedulerContract, tasksContract]) {
    contract('MongoDB', open);
  }

  test('hands tasks over whose process has ended before their locks lapse, and leaves others', async () => {
    await using harness = await openHarness(open);
    const [ended, heir] = [harness.process(), harness.process()];
    const options = { lockMs: 60_000, concurrency: 10 };
    const running: string[] = [];
    const end = Promise.withResolvers<void>();
    ended.scheduler.define('crawl', options, async ({ key }) => {
      running.push(key);
      await end.promise;
    });
    await ended.scheduler.start();
    for (const key of ['left', 'kept']) await ended.scheduler.wake('crawl', key, systemClock.now());
    await eventually(() => expect(running.sort()).toEqual(['kept', 'left']));
    ended.cutOff = true;
    const again: string[] = [];
    heir.scheduler.define('crawl', options, async ({ key }) => void again.push(key));
    await heir.scheduler.start();
    await heir.scheduler.wake('crawl', 'kept', systemClock.now());
    await heir.scheduler.takeOver('crawl', ['left']);
    await eventually(() => expect(again).toEqual(['left']));
    end.resolve();
  });

  test('polls and wakes by index, whatever waits for later', async () => {
    const client = await MongoClient.connect(uri, { monitorCommands: true });
    const db = client.db(`scheduler-${randomUUID()}`);
    const { connect, tasks } = createMongoBackend(db);
    await connect();
    const nextRunAt = new Date(Date.now() + 3_600_000);
    await db.collection(TASK_COLLECTION).insertMany(
      Array.from({ length: 2_000 }, (_, i) => ({
        task: `crawl/${i}`,
        name: 'crawl',
        type: 'normal',
        data: { key: `${i}` },
        nextRunAt,
      })),
    );
    const sent: Document[] = [];
    client.on('commandStarted', ({ command }) => sent.push(command));
    const now = systemClock.now();
    await tasks.claimDue('crawl', 't', now);
    await tasks.claimLapsed('crawl', 't', now, now);
    await tasks.wake('crawl', '17', nextRunAt);
    const queries = sent.map(({ query, sort, updates }) => ({
      filter: (query ?? (updates as Document[] | undefined)?.[0]?.['q']) as Document,
      sort: (sort ?? {}) as Record<string, 1 | -1>,
    }));
    const used = await Promise.all(
      queries.map(async ({ filter, sort }) => {
        const cursor = db.collection(TASK_COLLECTION).find(filter).sort(sort).limit(1);
        return /"indexName":"(\w+)"/.exec(JSON.stringify(await cursor.explain()))?.[1];
      }),
    );
    expect(used).toEqual(['due', 'locked', 'task']);
    await db.dropDatabase();
    await client.close();
  });
});
