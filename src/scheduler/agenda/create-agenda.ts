import { Agenda, type Job, type JobRepository, type NotificationChannel } from 'agenda';
import type { Logger } from '../../domain/logger.ts';
import { notBegun } from './fenced-repository.ts';

/** What Agenda is made with. */
export interface AgendaOptions {
  readonly processName: string;
  /** How Agenda shows the database. */
  readonly backendName: string;
  readonly repository: JobRepository;
  /** Wakes Agenda between its polls. */
  readonly channel: NotificationChannel;
  readonly processEveryMs: number;
  readonly tasks: readonly AgendaTask[];
  readonly logger: Logger;
}

/** A task as Agenda runs it. */
export interface AgendaTask {
  readonly name: string;
  /** Most runs at once. */
  readonly concurrency: number;
  readonly run: (job: Job) => Promise<void>;
}

/** Makes Agenda, which polls and starts runs. The repository decides what it may run. */
export function createAgenda(options: AgendaOptions): Agenda {
  const agenda = new Agenda({
    name: options.processName,
    backend: {
      name: options.backendName,
      repository: options.repository,
      ownsConnection: false,
      // The scheduler has connected: a failure within Agenda would be an unhandled rejection.
      async connect() {},
      async disconnect() {},
    },
    notificationChannel: options.channel,
    processEvery: options.processEveryMs,
    maxConcurrency: Number.MAX_SAFE_INTEGER,
    removeOnComplete: false,
  });
  agenda.on('error', (error: Error) => {
    if (error !== notBegun) options.logger.error({ err: error }, 'an error within Agenda');
  });
  // Typed by hand: Agenda's first overload accepts every function as one with a callback.
  const define: (name: string, run: AgendaTask['run'], limits: object) => void =
    agenda.define.bind(agenda);
  for (const { name, concurrency, run } of options.tasks) {
    // A run watches its lock itself. Agenda's own timer lasts half of `lockLifetime` or of the
    // polling interval, whichever is longer, and outlives the run.
    define(name, run, { concurrency, lockLimit: concurrency, lockLifetime: 1 });
  }
  return agenda;
}
