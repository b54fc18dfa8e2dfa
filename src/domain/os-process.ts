import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * The name of a process of this machine, by default of this one: which boot of which machine, the
 * namespace of its id, the id and when it started. No other process ever has it. Undefined where
 * the system does not tell (only Linux does), and when there is no such process.
 */
export function osProcessName(pid = process.pid): string | undefined {
  const startedAt = startTimeOf(pid);
  const place = placeName();
  return startedAt === undefined || place === undefined
    ? undefined
    : `${place}/${pid}/${startedAt}`;
}

/** Whether a process that `osProcessName` named is of this machine, and has ended. */
export function hasEnded(name: string): boolean {
  const [boot, namespace, pid, startedAt] = name.split('/');
  if (startedAt === undefined || `${boot}/${namespace}` !== placeName()) return false;
  const now = startTimeOf(Number(pid));
  return now === undefined ? isGone(Number(pid)) : now !== startedAt;
}

/** Whether the system knows no process of that id: /proc may hide those of other users. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/**
 * In ticks since the machine booted, `ended` of a process that only waits to be reaped; undefined
 * when the process cannot be seen.
 */
function startTimeOf(pid: number): string | undefined {
  const line = tryRead(() => readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? '';
  // The name in parentheses may contain spaces; its state and, 19 fields on, the start time follow.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const isEnded = fields[0] === 'Z' || fields[0] === 'X';
  return isEnded && !hasThreads(pid) ? 'ended' : fields[19];
}

/**
 * Whether threads are left of a process whose first one has ended. A process that is killed keeps its
 * connections until the last has ended, and one of low priority may have to wait for a processor.
 */
function hasThreads(pid: number): boolean {
  const threads = tryRead(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.some((thread) => thread !== `${pid}`);
}

let place: string | undefined;

function placeName(): string | undefined {
  place ??= tryRead(() => {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot}/${readlinkSync('/proc/self/ns/pid')}`;
  });
  return place;
}

function tryRead<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
