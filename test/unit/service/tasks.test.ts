import { expect, test } from 'vitest';
import type { Scheduler, Task } from '../../../src/scheduler/scheduler.ts';
import { defineTasks, type TaskDeps } from '../../../src/service/tasks.ts';
import { eventually } from '../../support/eventually.ts';

/** The handler of one task, with a store whose upkeep takes until it is told to end. */
function reconcileTask() {
  const handlers = new Map<string, (task: Task) => Promise<void>>();
  const upkeep = Promise.withResolvers<void>();
  const controller = new AbortController();
  let given: AbortSignal | undefined;
  let touches = 0;
  const woken: string[] = [];
  const scheduler = {
    define: (name: string, _options: unknown, handler: (task: Task) => Promise<void>) =>
      void handlers.set(name, handler),
    wake: async (_name: string, key: string) => void woken.push(key),
  } as unknown as Scheduler;
  defineTasks({
    scheduler,
    store: {
      async maintain(_now: Date, signal?: AbortSignal) {
        given = signal;
        await upkeep.promise;
      },
      queue: { crawlersWithWorkDue: async () => ['crawler'] },
    },
    dispatcher: { run: async () => undefined },
    completeBatches: async () => undefined,
    clock: { now: () => new Date() },
    timing: { lockMs: 30, runLockMs: 30 },
  } as unknown as TaskDeps);
  const handler = handlers.get('reconcile');
  if (handler === undefined) throw new Error('there is no such task');
  const task = {
    key: '',
    signal: controller.signal,
    touch: async () => void (touches += 1),
  };
  return {
    done: handler(task),
    controller,
    upkeep,
    woken,
    given: () => given,
    touches: () => touches,
  };
}

test('upkeep that takes longer than its lock keeps it, and wakes before what nobody woke', async () => {
  const task = reconcileTask();
  await eventually(() => expect(task.touches()).toBeGreaterThan(3));
  expect(task.woken).toEqual(['crawler']);
  task.upkeep.resolve();
  await task.done;
});

test('upkeep is told when its lock is lost', async () => {
  const task = reconcileTask();
  await eventually(() => expect(task.given()).toBeDefined());
  task.controller.abort();
  expect(task.given()?.aborted).toBe(true);
  task.upkeep.resolve();
  await task.done;
});
