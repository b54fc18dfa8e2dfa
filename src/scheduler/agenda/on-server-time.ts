import type { JobParameters } from 'agenda';
import type { SchedulerBackend } from './task-documents.ts';

/**
 * The same documents with the server's time in them. Agenda goes by the machine's; machines that
 * disagree would take each other's locks for lapsed.
 */
export function onServerTime(
  backend: SchedulerBackend,
  time: { readonly offsetMs: number },
): SchedulerBackend {
  const { tasks, presence } = backend;
  const toServer = (date: Date): Date => new Date(date.getTime() + time.offsetMs);
  const toMachine = (date: Date): Date => new Date(date.getTime() - time.offsetMs);

  function asClaimed(job: JobParameters | undefined): JobParameters | undefined {
    if (job === undefined) return undefined;
    const { nextRunAt, lockedAt } = job;
    return {
      ...job,
      ...(nextRunAt === null ? {} : { nextRunAt: toMachine(nextRunAt) }),
      ...(lockedAt === undefined ? {} : { lockedAt: toMachine(lockedAt) }),
    };
  }

  return {
    ...backend,
    tasks: {
      wake: (name, key, at) => tasks.wake(name, key, toServer(at)),
      repeat: (name, intervalMs, now) => tasks.repeat(name, intervalMs, toServer(now)),
      namesDue: (now, lockedBefore) => tasks.namesDue(toServer(now), toServer(lockedBefore)),
      claimDue: async (name, token, now, dueBy) =>
        asClaimed(await tasks.claimDue(name, token, toServer(now), dueBy && toServer(dueBy))),
      claimLapsed: async (name, token, lockedBefore, now) =>
        asClaimed(await tasks.claimLapsed(name, token, toServer(lockedBefore), toServer(now))),
      extend: (lock, now) => tasks.extend(lock, toServer(now)),
      finish: (lock, again) => tasks.finish(lock, again && toServer(again)),
    },
    ...(presence === undefined
      ? {}
      : {
          presence: {
            heartbeat: (name, now) => presence.heartbeat(name, toServer(now)),
            leave: presence.leave,
            unlock: presence.unlock,
          },
        }),
  };
}
