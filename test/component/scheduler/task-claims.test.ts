import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/domain/clock.ts';
import { createOutageLog } from '../../../src/scheduler/agenda/outage-log.ts';
import { createTaskClaims } from '../../../src/scheduler/agenda/task-claims.ts';
import type { TaskDocuments } from '../../../src/scheduler/agenda/task-documents.ts';
import { createRecordingLogger } from '../../support/loggers.ts';

test('a claim that need not ask the database, because the last look found nothing, ends no outage', async () => {
  const logger = createRecordingLogger();
  const outage = createOutageLog(logger);
  const claims = createTaskClaims({
    clock: systemClock,
    tasks: { namesDue: async () => [] } as Partial<TaskDocuments> as TaskDocuments,
    lockMs: () => 20_000,
    shortestLockMs: () => 20_000,
    lookMs: () => 60_000,
    yieldMs: () => 0,
    outage,
    closing: new AbortController().signal,
    onClaim: () => undefined,
    onChange: () => undefined,
  });
  expect(await claims.next('crawl')).toBeUndefined();
  await expect(outage.read(() => Promise.reject(new Error('away')))).rejects.toThrow('away');
  await wait(2);
  expect(await claims.next('crawl')).toBeUndefined();
  expect(logger.lines.map(({ level }) => level)).toEqual(['error']);
});
