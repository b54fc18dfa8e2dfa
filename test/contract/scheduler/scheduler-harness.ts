import { type Clock, systemClock } from '../../../src/domain/clock.ts';
import { createAgendaScheduler } from '../../../src/scheduler/agenda/agenda-scheduler.ts';
import type {
  SchedulerBackend,
  TaskDocuments,
} from '../../../src/scheduler/agenda/task-documents.ts';
import type { Scheduler } from '../../../src/scheduler/scheduler.ts';
import { createRecordingLogger } from '../../support/loggers.ts';

/** A fresh database that schedulers can share. */
export interface SchedulerDatabase {
  /** Another process's way to it. */
  backend(): SchedulerBackend;
  close(): Promise<void>;
}

/** One scheduler as a process of its own would have it. */
export interface TestProcess {
  readonly scheduler: Scheduler;
  /** What was logged, as `level: message`. */
  readonly log: readonly string[];
  /** While true its database does not answer, as after a crash of either. */
  cutOff: boolean;
}

/** Schedulers on one fresh database; disposing closes them and it. */
export interface SchedulerHarness extends AsyncDisposable {
  /** A scheduler that is not started; polls every 50 ms. `clock` is that of the machine by default. */
  process(clock?: Clock): TestProcess;
}

/** Opens a harness on a fresh database. */
export async function openHarness(
  open: () => Promise<SchedulerDatabase>,
): Promise<SchedulerHarness> {
  const database = await open();
  const processes: TestProcess[] = [];
  return {
    process(clock = systemClock) {
      const logger = createRecordingLogger();
      const backend = database.backend();
      const scheduler = createAgendaScheduler({
        backend: { ...backend, tasks: breakable(backend.tasks, () => made.cutOff) },
        processName: `test-${processes.length}`,
        processEveryMs: 50,
        clock,
        logger,
      });
      const made: TestProcess = {
        scheduler,
        get log() {
          return logger.lines.map(({ level, message }) => `${level}: ${message}`);
        },
        cutOff: false,
      };
      processes.push(made);
      return made;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(processes.map(({ scheduler }) => scheduler.close(0)));
      await database.close();
    },
  };
}

function breakable(tasks: TaskDocuments, broken: () => boolean): TaskDocuments {
  return new Proxy(tasks, {
    get(target, method: keyof TaskDocuments) {
      if (!broken()) return target[method];
      return async () => {
        throw new Error('The test cut the database off');
      };
    },
  });
}
