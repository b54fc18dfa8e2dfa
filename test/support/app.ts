import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { type App, startApp as start } from '../../src/app/app.ts';
import { readConfig } from '../../src/config/config.ts';
import type { AppTiming } from '../../src/config/timing.ts';
import type { ServiceClock } from '../../src/domain/clock.ts';
import { callRest, type RestReply } from './call-rest.ts';
import { type TestDatabase, testDatabase } from './mongodb.ts';
import { logged } from './redaction.ts';
import { TEST_SETTINGS } from './test-settings.ts';
import { ADMIN, JAVASCRIPT, NORMAL } from './tokens.ts';

export { ADMIN, callRest, JAVASCRIPT, NORMAL, type RestReply, TEST_SETTINGS };

/** The whole service on a free port. */
export interface TestApp extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly dataDir: string;
  /** Lines the service logged. */
  readonly log: readonly string[];
  /** Calls a path of the REST API; an object body is sent as JSON. */
  rest(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<RestReply>;
  /** Stops the service, keeping its data. */
  stop(): Promise<void>;
}

/** What a test changes. */
export interface TestAppOptions {
  /** Environment variables; `PUSH_RATE_PER_SECOND` and `ACCOUNT_REQUESTS_PER_SECOND` are 0 and `NETWORK_ALLOW` 127.0.0.1 unless given. */
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: ServiceClock;
  readonly timing?: Partial<AppTiming>;
  /** Data of an app before; it is left where it is. */
  readonly dataDir?: string;
}

/**
 * Short times, so that tests need not wait for the service's own. Leases and locks are long: a
 * process that stood still on a busy machine would crawl a URL again, and no test waits for them. The
 * same holds for documents, which threads read that yield to others.
 */
export const QUICK: AppTiming = {
  dispatch: {
    leaseMs: 60_000,
    renewMs: 1_000,
    turnMs: 2,
    pollMs: 30,
    idleReleaseMs: 100,
    drainMs: 3_000,
  },
  tasks: { timeoutMs: 100, reconcileMs: 200, probeMs: 100, lockMs: 61_000, runLockMs: 61_000 },
  documentMs: 60_000,
  hangMs: 8_000,
  tlsCheckMs: 30_000,
};

/**
 * The same, for tests that count requests and end no process: with short leases, a process that a busy
 * machine has stopped for seconds crawls again what it was crawling.
 */
export const PATIENT: AppTiming = {
  ...QUICK,
  dispatch: { ...QUICK.dispatch, leaseMs: 60_000 },
  tasks: { ...QUICK.tasks, lockMs: 60_000, runLockMs: 60_000 },
  hangMs: 60_000,
};

/** Whether this project of the tests runs the service on MongoDB. */
const ofMongodb = process.env.TEST_STORE === 'mongodb';

// An app that continues with the data of another finds them by that one's folder.
const databases = new Map<string, TestDatabase>();

function databaseOf(dataDir: string): TestDatabase {
  const database = databases.get(dataDir) ?? testDatabase();
  databases.set(dataDir, database);
  return database;
}

/** Starts the service; disposing stops it and removes its data. */
export async function startApp(options: TestAppOptions = {}): Promise<TestApp> {
  const own = options.dataDir === undefined;
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'queued-crawler-')));
  const database = ofMongodb ? databaseOf(dataDir) : undefined;
  const log: string[] = [];
  const config = readConfig({
    ...TEST_SETTINGS,
    DATA_DIR: dataDir,
    SHUTDOWN_SECONDS: '5',
    ...(database === undefined ? {} : { MONGODB_URI: database.uri }),
    ...options.env,
  });
  const kept = pino.levels.values[config.logLevel] ?? Number.POSITIVE_INFINITY;
  // All lines are searched for secrets, whatever the level of those that the test sees.
  const write = (line: string): void => {
    logged(line);
    const { level } = JSON.parse(line) as { level: number };
    if (level >= kept) log.push(line);
  };
  const logger = pino({ level: 'debug' }, { write });
  const app: App = await start({
    config,
    logger,
    timing: { ...QUICK, ...options.timing },
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopped ??= app.close());
  return {
    url: app.url,
    port: app.port,
    dataDir,
    log,
    stop,
    rest: (method, path, body, headers) => callRest(app.url + path, method, body, headers),
    async [Symbol.asyncDispose]() {
      await stop();
      if (!own) return;
      await rm(dataDir, { recursive: true, force: true });
      await database?.[Symbol.asyncDispose]();
      databases.delete(dataDir);
    },
  };
}
