import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { osProcessName } from '../../../src/domain/os-process.ts';
import type { ProcessReport } from '../../../src/domain/process-report.ts';
import { openMongoStore } from '../../../src/store/mongo/mongo-store.ts';
import { eventually } from '../../support/eventually.ts';
import { createRecordingLogger, silentLogger } from '../../support/loggers.ts';
import { mongodbUri, testDatabase } from '../../support/mongodb.ts';

/** A wait that ends soon, and one that ends only with what it waits for. */
const SHORT = { waitMs: 300, lookMs: 50, progressMs: 100 };
const LONG = { lookMs: 20, progressMs: 20 };

const reportOf = (reportedAt: Date, osProcess = ''): ProcessReport => ({
  processId: 'old-1',
  osProcess,
  role: 'worker',
  version: '0.2.0',
  startedAt: reportedAt,
  reportedAt,
  crawlers: 1,
  crawls: 1,
  deliveries: 0,
  browserPages: 0,
  memoryBytes: 1,
  cpuCores: 0,
  eventLoopUse: 0,
});

/** A database, and a store on it of another process that set the version of the schema to `version`. */
async function openWith(uri: string, version: number, onFatal: (error: Error) => void = () => {}) {
  const { store, db } = await openMongoStore({ uri, logger: silentLogger, onFatal });
  const meta = db.collection<{ _id: string; version: number }>('meta');
  const current = (await meta.findOne({ _id: 'schema' }))?.version ?? 0;
  await meta.updateOne({ _id: 'schema' }, { $set: { version: version + current } });
  return {
    store,
    current,
    version: async () => (await meta.findOne({ _id: 'schema' }))?.version,
    report: store.processes.report,
    [Symbol.asyncDispose]: () => store.close(),
  };
}

describe.skipIf(mongodbUri === '')('processes of several versions on one MongoDB', () => {
  test('a new one changes nothing while one of the version before works, and names it', async () => {
    await using database = testDatabase();
    await using old = await openWith(database.uri, -1);
    await old.report(reportOf(new Date()));
    const logger = createRecordingLogger();
    const opening = openMongoStore({ uri: database.uri, logger, waitTimes: SHORT });
    const end = await opening.then(
      ({ store }) => store.close(),
      (error: unknown) => error,
    );
    expect(end).toMatchObject({
      reason: 'database_in_use',
      message: expect.stringContaining('old-1 (0.2.0)'),
    });
    expect(await old.version()).toBe(old.current - 1);
    expect(JSON.stringify(logger.lines)).toContain('old-1 (0.2.0)');
  });

  test('a new one upgrades the database once the one before has ended', async () => {
    await using database = testDatabase();
    await using old = await openWith(database.uri, -1);
    await old.report(reportOf(new Date()));
    const logger = createRecordingLogger();
    const opening = openMongoStore({ uri: database.uri, logger, waitTimes: LONG });
    await eventually(() => expect(JSON.stringify(logger.lines)).toContain('old-1 (0.2.0)'));
    expect(await old.version()).toBe(old.current - 1);
    // It stops: its last report gets old.
    await old.report(reportOf(new Date(Date.now() - 50_000)));
    const { store } = await opening;
    await using _closing = { [Symbol.asyncDispose]: () => store.close() };
    expect(await old.version()).toBe(old.current);
  });

  test.skipIf(process.platform !== 'linux')(
    'a new one does not wait for one of its machine that has ended',
    async () => {
      await using database = testDatabase();
      await using old = await openWith(database.uri, -1);
      const child = spawn(process.execPath, ['-e', 'process.stdin.resume()']);
      const name = osProcessName(child.pid);
      child.kill('SIGKILL');
      await once(child, 'close');
      await old.report(reportOf(new Date(), name));
      const options = { uri: database.uri, logger: silentLogger, waitTimes: SHORT };
      const { store } = await openMongoStore(options);
      await store.close();
      expect(await old.version()).toBe(old.current);
    },
  );

  test('processes of one version start next to each other', async () => {
    await using database = testDatabase();
    await using other = await openWith(database.uri, 0);
    await other.report(reportOf(new Date()));
    const options = { uri: database.uri, logger: silentLogger, waitTimes: SHORT };
    const { store } = await openMongoStore(options);
    await store.close();
  });

  test('one that runs on stops when the database was upgraded, and writes nothing more', async () => {
    await using database = testDatabase();
    const fatal: Error[] = [];
    await using running = await openWith(database.uri, 1, (error) => fatal.push(error));
    await expect(running.report(reportOf(new Date()))).rejects.toThrow();
    await eventually(() => expect(fatal).toMatchObject([{ reason: 'database_too_new' }]));
    await expect(running.store.ping()).rejects.toThrow();
  });
});
