import type { Document } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../../src/domain/durations.ts';
import {
  type Collections,
  type SampleDocument,
  toCollections,
} from '../../../src/store/mongo/collections.ts';

import { toJobDocument } from '../../../src/store/mongo/job-document.ts';
import { NO_WORK } from '../../../src/store/mongo/lease.ts';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { deliveryDocument } from '../../../src/store/mongo/records.ts';
import { silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';
import { makeRecord } from './outcomes.ts';
import { at, createBench, makeJob, type StoreBench } from './store-harness.ts';

/** The commands that a store has sent. */
interface Sent {
  readonly commands: Document[];
  /** The most of them that waited for an answer at once. */
  most: number;
  /** The most documents that an answer had. */
  longest: number;
  onCommand?: (command: Document) => void;
}

interface Reply {
  readonly cursor?: { readonly firstBatch?: unknown[]; readonly nextBatch?: unknown[] };
}

/** A store, the documents behind it, and the commands that it sends from `watch` on. */
function withCommands(
  use: (bench: StoreBench, c: Collections, watch: () => Sent) => Promise<void>,
) {
  return async () => {
    await using database = testDatabase();
    const uri = `${database.uri}?monitorCommands=true`;
    const { store, db } = await openMongoStore({ uri, logger: silentLogger });
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    await use(createBench({ store }), toCollections(db), () => {
      const sent: Sent = { commands: [], most: 0, longest: 0 };
      let open = 0;
      db.client.on('commandStarted', ({ command }) => {
        sent.commands.push(command);
        sent.onCommand?.(command);
        open += 1;
        sent.most = Math.max(sent.most, open);
      });
      for (const end of ['commandSucceeded', 'commandFailed'] as const) {
        db.client.on(end, () => {
          open -= 1;
        });
      }
      db.client.on('commandSucceeded', ({ reply }) => {
        const { firstBatch = [], nextBatch = firstBatch } = (reply as Reply).cursor ?? {};
        sent.longest = Math.max(sent.longest, nextBatch.length);
      });
      return sent;
    });
  };
}

describe.skipIf(mongodbUri === '')('upkeep of many documents on MongoDB', () => {
  test(
    'crawlers that nobody woke are woken without taking all connections, and paused ones are left alone',
    withCommands(async ({ store, account, crawler, push }, c, watch) => {
      const { accountId } = await account();
      const forgotten = [];
      for (let n = 0; n < 30; n += 1) forgotten.push(await crawler({ accountId }));
      const paused = await crawler({ accountId });
      for (const each of [...forgotten, paused]) await push([makeJob(each)]);
      await store.crawlers.setPaused(paused.crawlerId, 'user_pause', at(0));
      await c.crawlers.updateMany({}, { $set: { wakeAt: NO_WORK } });
      const sent = watch();
      await store.maintain(at(1_000));
      expect(sent.most).toBeLessThan(10);
      const reads = sent.commands.filter(({ find }) => find === 'jobs');
      expect(reads.map(({ filter }) => filter.crawlerId)).not.toContain(paused.crawlerId);
      expect(await store.queue.crawlersWithWorkDue(at(1_000), 100)).toHaveLength(30);
    }),
  );

  test(
    'documents that were found to be removed are removed by their ids',
    withCommands(async ({ store, crawler }, c, watch) => {
      const [made, hook] = [await crawler(), await crawler({ delivery: 'webhook' })];
      await c.jobs.insertMany([1, 2, 3].map(() => toJobDocument(makeJob(made))));
      const kept = { keptAt: at(0), due: at(0), epoch: undefined, expiresAt: at(10) };
      const record = makeRecord(makeJob(hook));
      const { crawlerId } = hook;
      await c.deliveries.insertOne(
        deliveryDocument({ crawlerId, record, callbackHeaders: [], ...kept }),
      );
      const sent = watch();
      await store.crawlers.remove(made.crawlerId);
      await store.maintain(at(20));
      for (const name of ['jobs', 'deliveries'] as const) {
        const removals = sent.commands
          .filter((command) => command.delete === name)
          .flatMap(({ deletes }) => deletes as Document[]);
        expect(removals.length).toBeGreaterThan(0);
        for (const { hint } of removals) expect(hint).toEqual({ _id: 1 });
        expect(await c[name].countDocuments({})).toBe(0);
      }
    }),
  );

  test(
    'samples of many crawlers are thinned in parts',
    withCommands(async ({ store }, c, watch) => {
      const sample = (n: number, time: number): SampleDocument => ({
        _id: `${n}/${at(time).getTime()}`,
        crawlerId: String(n),
        at: at(time),
        day: '2040-05-17',
        counts: {},
        queued: 0,
      });
      const crawlers = Array.from({ length: 1_200 }, (_, n) => n);
      await c.samples.insertMany(
        [0, MINUTE_MS, 10 * MINUTE_MS].flatMap((time) => crawlers.map((n) => sample(n, time))),
      );
      const sent = watch();
      await store.maintain(at(120 * MINUTE_MS));
      expect(sent.longest).toBeGreaterThan(0);
      expect(sent.longest).toBeLessThanOrEqual(1_000);
      const kept = await c.samples.find({ crawlerId: '7' }).sort({ at: 1 }).toArray();
      expect(kept.map((each) => each.at)).toEqual([at(MINUTE_MS), at(10 * MINUTE_MS)]);
      expect(await c.samples.countDocuments({ crawlerId: { $ne: '' } })).toBe(2_400);
    }),
  );

  test(
    'samples are taken before the days of many crawlers are moved, which can take all the time',
    withCommands(async ({ store, crawler, push }, c, watch) => {
      const made = await crawler();
      await push([makeJob(made)], at(-3 * DAY_MS));
      const stopped = new AbortController();
      watch().onCommand = ({ update }) => {
        if (update === 'history') stopped.abort();
      };
      await store.maintain(at(0), stopped.signal);
      expect(stopped.signal.aborted).toBe(true);
      const { crawlerId } = made;
      expect(await c.samples.find({ crawlerId }).toArray()).toMatchObject([{ queued: 1 }]);
    }),
  );
});
