import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { createAgendaScheduler } from '../../../src/scheduler/agenda/agenda-scheduler.ts';
import type { TaskDocuments } from '../../../src/scheduler/agenda/task-documents.ts';
import { createSqliteBackend } from '../../../src/scheduler/sqlite/backend.ts';
import { openSqlQuery } from '../../contract/scheduler/sqlite-harness.ts';
import { eventually } from '../../support/eventually.ts';
import { createRecordingLogger, silentLogger } from '../../support/loggers.ts';

test('what another process woke runs soon, without waiting for a poll', async () => {
  // Polls never come.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { query, close } = openSqlQuery();
  const backend = createSqliteBackend({ query });
  const scheduler = createAgendaScheduler({
    backend: {
      ...backend,
      presence: {
        heartbeat: async () => 1,
        leave: async () => undefined,
        unlock: async () => undefined,
      },
    },
    processName: 'worker',
    processEveryMs: 500,
    logger: silentLogger,
  });
  let runs = 0;
  scheduler.define('crawl', { lockMs: 20_000, concurrency: 100 }, async () => {
    runs += 1;
  });
  try {
    await scheduler.start();
    await backend.tasks.wake('crawl', 'one', systemClock.now());
    await eventually(() => expect(runs).toBe(1));
  } finally {
    await scheduler.close(1_000);
    close();
  }
});

test('a process with peers that was woken for what it runs already does not ask the database on and on', async () => {
  const { query, close } = openSqlQuery();
  const backend = createSqliteBackend({ query });
  let claims = 0;
  let looks = 0;
  const scheduler = createAgendaScheduler({
    backend: {
      ...backend,
      tasks: {
        ...backend.tasks,
        claimDue(...call) {
          claims += 1;
          return backend.tasks.claimDue(...call);
        },
        namesDue(...call) {
          looks += 1;
          return backend.tasks.namesDue(...call);
        },
      },
      presence: {
        heartbeat: async () => 3,
        leave: async () => undefined,
        unlock: async () => undefined,
      },
    },
    processName: 'busy',
    processEveryMs: 50,
    logger: silentLogger,
  });
  const end = Promise.withResolvers<void>();
  let runs = 0;
  const options = { lockMs: 20_000, concurrency: 100, sharesWithPeers: true };
  scheduler.define('crawl', options, async () => {
    runs += 1;
    await end.promise;
  });
  try {
    await scheduler.start();
    await scheduler.wake('crawl', 'one', systemClock.now());
    await eventually(() => expect(runs).toBe(1));
    await scheduler.wake('crawl', 'one', systemClock.now());
    await eventually(() => expect(looks).toBeGreaterThan(2));
    const before = { claims, looks };
    await eventually(() => expect(looks - before.looks).toBeGreaterThan(20));
    // The name stays due until the run has ended. So each look at the names, and the one in
    // progress, may lead to a claim and one after its yield.
    expect(claims - before.claims).toBeLessThanOrEqual(2 * (looks - before.looks + 1));
    await scheduler.wake('crawl', 'two', systemClock.now());
    await eventually(() => expect(runs).toBe(2));
  } finally {
    end.resolve();
    await scheduler.close(1_000);
    close();
  }
});

test('a task that was woken here costs one claim and one end in addition to its wake', async () => {
  const { query, close } = openSqlQuery();
  const backend = createSqliteBackend({ query });
  const calls: string[] = [];
  const tasks: TaskDocuments = {
    ...backend.tasks,
    claimDue(...call) {
      calls.push('claimDue');
      return backend.tasks.claimDue(...call);
    },
    claimLapsed(...call) {
      calls.push('claimLapsed');
      return backend.tasks.claimLapsed(...call);
    },
    finish(...call) {
      calls.push('finish');
      return backend.tasks.finish(...call);
    },
  };
  const scheduler = createAgendaScheduler({
    backend: { ...backend, tasks },
    processName: 'worker',
    processEveryMs: 2_000,
    logger: silentLogger,
  });
  const ran: string[] = [];
  scheduler.define('crawl', { lockMs: 20_000, concurrency: 100 }, async ({ key }) => {
    ran.push(key);
  });
  try {
    await scheduler.start();
    for (const key of ['one', 'two', 'three']) {
      await scheduler.wake('crawl', key, systemClock.now());
      await eventually(() => expect(ran.at(-1)).toBe(key));
    }
    await Promise.all(
      ['four', 'five', 'six'].map((key) => scheduler.wake('crawl', key, systemClock.now())),
    );
    await eventually(() => expect(ran).toHaveLength(6));
    await eventually(() => expect(calls.filter((each) => each === 'finish')).toHaveLength(6));
    expect(calls.filter((each) => each.startsWith('claim'))).toEqual(
      Array.from({ length: 6 }, () => 'claimDue'),
    );
  } finally {
    await scheduler.close(1_000);
    close();
  }
});

/** Two processes on one database; `here` knows of `peers` others. */
function twoProcesses(peers: number) {
  const { query, close } = openSqlQuery();
  const backend = createSqliteBackend({ query, exclusive: false });
  const written: string[] = [];
  const tasks: TaskDocuments = {
    ...backend.tasks,
    wake(...call) {
      written.push(`wake ${call[1]}`);
      return backend.tasks.wake(...call);
    },
    claimDue(...call) {
      written.push('claimDue');
      return backend.tasks.claimDue(...call);
    },
  };
  const presence = {
    heartbeat: async () => peers,
    leave: async () => undefined,
    unlock: async () => undefined,
  };
  const process = (processName: string, of: TaskDocuments) =>
    createAgendaScheduler({
      backend: { ...backend, tasks: of, presence },
      processName,
      processEveryMs: 200,
      logger: silentLogger,
    });
  const here = process('here', tasks);
  const there = process('there', backend.tasks);
  return {
    here,
    there,
    written,
    async [Symbol.asyncDispose]() {
      await Promise.all([here.close(1_000), there.close(1_000)]);
      close();
    },
  };
}

const shared = { lockMs: 20_000, concurrency: 100, sharesWithPeers: true };

test('a task that is run now writes nothing, unless the process stops before its end: then another runs it', async () => {
  await using processes = twoProcesses(0);
  const { here, there, written } = processes;
  const ran: string[] = [];
  expect(here.runNow('crawl', 'too early')).toBe(false);
  here.define('crawl', shared, async ({ key, signal }) => {
    ran.push(`here ${key}`);
    if (key === 'short') return;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  });
  there.define('crawl', shared, async ({ key }) => void ran.push(`there ${key}`));
  await Promise.all([here.start(), there.start()]);
  expect(here.runNow('probe', 'of no definition')).toBe(false);
  expect(here.runNow('crawl', 'short')).toBe(true);
  expect(here.runNow('crawl', 'long')).toBe(true);
  await eventually(() => expect(ran).toEqual(['here short', 'here long']));
  expect(written).toEqual([]);
  await here.close(1_000);
  expect(here.runNow('crawl', 'too late')).toBe(false);
  expect(written).toEqual(['wake long']);
  await eventually(() => expect(ran.at(-1)).toBe('there long'));
});

test('a task that failed when it was run now runs again', async () => {
  await using processes = twoProcesses(0);
  const { here } = processes;
  let runs = 0;
  here.define('crawl', shared, async () => {
    runs += 1;
    if (runs === 1) throw new Error('the database is unavailable');
  });
  await here.start();
  expect(here.runNow('crawl', 'one')).toBe(true);
  await eventually(() => expect(runs).toBe(2));
});

test('a task that is run now asks no database, so it ends no outage in the log', async () => {
  const { query, close } = openSqlQuery();
  const backend = createSqliteBackend({ query });
  const logger = createRecordingLogger();
  const silence = Promise.withResolvers<readonly string[]>();
  let looks = 0;
  const namesDue = () => {
    looks += 1;
    return looks === 1 ? Promise.reject(new Error('away')) : silence.promise;
  };
  const scheduler = createAgendaScheduler({
    backend: { ...backend, tasks: { ...backend.tasks, namesDue } },
    processName: 'worker',
    processEveryMs: 100,
    logger,
  });
  let touched = 0;
  scheduler.define('crawl', shared, async (task) => {
    // The database has been silent for a while.
    await eventually(() => expect(looks).toBe(2));
    await wait(2);
    await task.touch();
    touched += 1;
  });
  try {
    await scheduler.start();
    expect(scheduler.runNow('crawl', 'one')).toBe(true);
    await eventually(() => expect(touched).toBe(1));
    expect(logger.lines.map(({ level }) => level)).toEqual(['error']);
  } finally {
    silence.resolve([]);
    await scheduler.close(1_000);
    close();
  }
});

test('a process with peers runs a task now only when it runs no other', async () => {
  await using processes = twoProcesses(3);
  const { here } = processes;
  const end = Promise.withResolvers<void>();
  here.define('crawl', shared, () => end.promise);
  await here.start();
  expect(here.runNow('crawl', 'one')).toBe(true);
  expect(here.runNow('crawl', 'two')).toBe(false);
  expect(here.runNow('crawl', 'its own', 'own')).toBe(true);
  end.resolve();
  await eventually(() => expect(here.runNow('crawl', 'two')).toBe(true));
});
