import { randomUUID } from 'node:crypto';
import type { Clock } from '../../domain/clock.ts';
import type { OutageLog } from './outage-log.ts';
import type { LockedTask, TaskDocuments } from './task-documents.ts';

/** A claim while this process holds it. */
export interface ClaimedTask extends LockedTask {
  readonly name: string;
  /** When the lock was last renewed, as the database has it. */
  lockedAt: Date;
  /** When to run again after this run; absent when the run did its work. */
  again?: Date;
  /** Set when the run is given up: another process takes the task over when its lock lapses. */
  abandoned: boolean;
  /** Resolved when the end of the run is written, or when writing it was given up. */
  readonly ended: PromiseWithResolvers<void>;
}

/** What {@link createTaskClaims} works with. */
export interface TaskClaimsDeps {
  readonly tasks: TaskDocuments;
  readonly clock: Clock;
  readonly lockMs: (name: string) => number;
  /** The shortest of all. */
  readonly shortestLockMs: () => number;
  /** How long it stays known which names have tasks that are due, unless one is expected. */
  readonly lookMs: () => number;
  /** How long a due task is left to other processes before this one claims it. */
  readonly yieldMs: (name: string) => number;
  readonly outage: OutageLog;
  /** Aborted when nothing may start any more. */
  readonly closing: AbortSignal;
  /** Called when a claimed task can start. */
  readonly onClaim: (name: string) => void;
  /** Called when further tasks of this name may be due, and there is room for one. */
  readonly onChange: (name: string) => void;
}

/** The claims of one process. */
export interface TaskClaims {
  /** Claims the next task of this name; undefined when no task is due, or the database is unavailable. */
  next(name: string): Promise<ClaimedTask | undefined>;
  /** `count` more tasks of this name may be due: claims ask for them without a look. */
  expect(name: string, count: number): void;
  /** The names that have tasks that are due. */
  look(): Promise<readonly string[]>;
  /** Gives a claim back: the task is due at once. */
  giveBack(task: ClaimedTask): Promise<void>;
  /** Repeats a write of a claim through an outage, for as long as its lock can be ours. */
  persist<T>(task: ClaimedTask, write: () => Promise<T>): Promise<T | undefined>;
  /** Resolves when no answer to a claim is outstanding. */
  settled(): Promise<void>;
}

const RETRY_MS = 250;
/** The part of a lock's time for which it is respected beyond it, so that its run stops first. */
const LAPSE_MARGIN = 0.05;

/** Makes the claims of one process. */
export function createTaskClaims(deps: TaskClaimsDeps): TaskClaims {
  const { tasks, outage, closing } = deps;
  const inFlight = new Map<string, { again: boolean; readonly done: Promise<unknown> }>();
  /** How many tasks of a name may be due, in addition to those that looks find. */
  const expected = new Map<string, number>();
  /** One look at all names, for the claims of all of them. */
  let look: { readonly untilMs: number; readonly names: Promise<Set<string>> } | undefined;
  const yielding = new Set<string>();
  /** Names whose next claim is the one after a yield, which leads to no other. */
  const yielded = new Set<string>();

  function expect(name: string, count: number): void {
    expected.set(name, count + (expected.get(name) ?? 0));
  }

  async function persist<T>(task: ClaimedTask, write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await outage.write(write);
      } catch {
        // The outage log has reported it.
        const lapsesAt = task.lockedAt.getTime() + deps.lockMs(task.name);
        if (task.abandoned || closing.aborted || deps.clock.now().getTime() >= lapsesAt)
          return undefined;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  async function giveBack(task: ClaimedTask): Promise<void> {
    await persist(task, () => tasks.finish(task, task.lockedAt));
  }

  async function claim(name: string): Promise<ClaimedTask | undefined> {
    const token = randomUUID();
    const now = deps.clock.now();
    const yieldMs = deps.yieldMs(name);
    const others = (expected.get(name) ?? 0) - 1;
    const isExpected = others >= 0;
    expected.delete(name);
    const hasYielded = yielded.delete(name);
    const isSeen = !isExpected && (await namesDue(now)).delete(name);
    if (!isExpected && !isSeen) return undefined;
    const dueBy = new Date(now.getTime() - yieldMs);
    let locked = await outage.write(() => tasks.claimDue(name, token, now, dueBy));
    if (locked === undefined && yieldMs > 0 && !hasYielded) claimAfterYield(name, yieldMs);
    if (locked === undefined && isSeen) {
      const lockedBefore = new Date(now.getTime() - deps.lockMs(name) * (1 + LAPSE_MARGIN));
      locked = await outage.write(() => tasks.claimLapsed(name, token, lockedBefore, now));
    }
    if (locked === undefined) return undefined;
    const ended = Promise.withResolvers<void>();
    const task: ClaimedTask = { ...locked, name, lockedAt: now, abandoned: false, ended };
    if (closing.aborted) {
      await giveBack(task);
      return undefined;
    }
    const left = isSeen || hasYielded ? Number.POSITIVE_INFINITY : others;
    if (left > 0 && !task.repeats) expect(name, left);
    // In a long series of claims, each task starts now and not after the last claim.
    if (!task.repeats) setImmediate(() => deps.onClaim(name));
    return task;
  }

  /** The names with tasks that are due; those that were claimed since the look are left out. */
  async function namesDue(now: Date): Promise<Set<string>> {
    if (look === undefined || look.untilMs <= performance.now()) {
      const lockedBefore = new Date(now.getTime() - deps.shortestLockMs());
      const found = outage.read(() => tasks.namesDue(now, lockedBefore));
      const names = found.then((each) => new Set(each));
      names.catch(() => {
        look = undefined;
      });
      look = { untilMs: performance.now() + deps.lookMs(), names };
    }
    return look.names;
  }

  /** Claims again when the tasks that are due now are no longer left to others. */
  function claimAfterYield(name: string, yieldMs: number): void {
    if (yielding.has(name)) return;
    yielding.add(name);
    setTimeout(() => {
      yielding.delete(name);
      yielded.add(name);
      deps.onChange(name);
    }, yieldMs).unref();
  }

  return {
    async next(name) {
      const earlier = inFlight.get(name);
      if (earlier !== undefined || closing.aborted) {
        // One query per name at a time keeps Agenda within its lock limit. The query in flight is
        // repeated for what became due during it.
        if (earlier !== undefined) earlier.again = true;
        return undefined;
      }
      const done = Promise.withResolvers<void>();
      const current = { again: true, done: done.promise };
      inFlight.set(name, current);
      try {
        let claimed: ClaimedTask | undefined;
        while (claimed === undefined && current.again && !closing.aborted) {
          current.again = false;
          claimed = await claim(name);
        }
        return claimed;
      } catch {
        // The outage log has reported it; the next poll tries again.
        return undefined;
      } finally {
        inFlight.delete(name);
        done.resolve();
      }
    },
    expect,
    look: async () => [...(await namesDue(deps.clock.now()))],
    giveBack,
    persist,
    async settled() {
      await Promise.all([...inFlight.values()].map(({ done }) => done));
    },
  };
}
