import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { watchConnection } from '../../../src/store/mongo/connection-watch.ts';
import { eventually } from '../../support/eventually.ts';
import { createRecordingLogger } from '../../support/loggers.ts';
import { openMongoGate } from '../../support/mongo-gate.ts';
import { mongodbUri } from '../../support/mongodb.ts';

const TIMES = {
  everyMs: 20,
  answerMs: 300,
  patienceMs: 400,
  busyPatienceMs: 60_000,
  lastMs: 2_000,
};
const OPTIONS = { serverSelectionTimeoutMS: 300 };

/** Connects, which takes longer than the options allow on a busy machine. */
const connect = (client: MongoClient): Promise<MongoClient> => eventually(() => client.connect());

describe.skipIf(mongodbUri === '')('a client of MongoDB that does not come back', () => {
  test('connects anew, and ends the process when that does not help', async () => {
    await using gate = await openMongoGate(mongodbUri);
    const logger = createRecordingLogger();
    await using client = new MongoClient(gate.uri, OPTIONS);
    await connect(client);
    const fatal: Error[] = [];
    // A new client reaches the server, this one only the gate.
    const watch = watchConnection({
      client,
      uri: mongodbUri,
      options: OPTIONS,
      logger,
      onFatal: (error) => void fatal.push(error),
      times: TIMES,
    });
    try {
      await client.db('admin').command({ ping: 1 });
      const open = gate.refuse(() => true);
      await eventually(() => expect(fatal).toHaveLength(1));
      expect(fatal[0]?.message).toBe('The database answers others, but not this process.');
      expect(logger.lines.filter(({ level }) => level === 'warn').length).toBeGreaterThan(0);
      open();
    } finally {
      watch.close();
    }
  });

  test('connects anew when its connections take long to close', async () => {
    await using gate = await openMongoGate(mongodbUri);
    const logger = createRecordingLogger();
    await using client = new MongoClient(gate.uri, OPTIONS);
    await connect(client);
    const fatal: Error[] = [];
    const onFatal = (error: Error): void => void fatal.push(error);
    const open = gate.refuse(() => true);
    // As where cursors and sessions wait for an answer.
    const close = client.close.bind(client);
    client.close = async () => {
      await sleep(3 * TIMES.answerMs);
      await close();
      open();
    };
    const times = { ...TIMES, lastMs: 60_000 };
    const watched = { client, uri: mongodbUri, options: OPTIONS, logger, onFatal, times };
    const watch = watchConnection(watched);
    try {
      await eventually(async () => {
        // A ping that a busy machine answers late has the client connect once more.
        expect(logger.lines.some(({ level }) => level === 'warn')).toBe(true);
        expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 });
      });
      expect(fatal).toEqual([]);
    } finally {
      watch.close();
      client.close = close;
    }
  });

  test('waits for slow reads that take all connections', async () => {
    await using gate = await openMongoGate(mongodbUri);
    const logger = createRecordingLogger();
    await using client = new MongoClient(gate.uri, { ...OPTIONS, maxPoolSize: 2 });
    await connect(client);
    const onFatal = (): void => undefined;
    const watched = { client, uri: mongodbUri, options: OPTIONS, logger, onFatal, times: TIMES };
    const isRead = ({ find }: { find?: unknown }): boolean => find === 'slow';
    const watch = watchConnection(watched);
    const held = [gate.hold(isRead), gate.hold(isRead)];
    const reads = held.map(() => client.db('watched').collection('slow').findOne({}));
    await Promise.all(held.map(({ reached }) => reached));
    let looks = 0;
    client.on('connectionCheckOutStarted', () => (looks += 1));
    try {
      // Each lasts until the deadline of its ping, so together far longer than the patience.
      await eventually(() => expect(looks).toBeGreaterThan(8));
      for (const each of held) each.release();
      expect(await Promise.all(reads)).toEqual([null, null]);
      expect(logger.lines.filter(({ level }) => level === 'warn')).toEqual([]);
    } finally {
      watch.close();
    }
  });

  test('waits for a database that answers nobody', async () => {
    const gate = await openMongoGate(mongodbUri);
    const logger = createRecordingLogger();
    await using client = new MongoClient(gate.uri, OPTIONS);
    await connect(client);
    const fatal: Error[] = [];
    const onFatal = (error: Error): void => void fatal.push(error);
    const times = { ...TIMES, lastMs: 100 };
    const watched = { client, uri: gate.uri, options: OPTIONS, logger, onFatal, times };
    const watch = watchConnection(watched);
    let looks = 0;
    const open = gate.refuse(() => {
      looks += 1;
      return true;
    });
    try {
      await eventually(() => expect(looks).toBeGreaterThan(20));
      expect(fatal).toEqual([]);
      open();
      await eventually(async () => {
        expect(await client.db('admin').command({ ping: 1 })).toMatchObject({ ok: 1 });
      });
    } finally {
      watch.close();
      await gate[Symbol.asyncDispose]();
    }
  });
});
