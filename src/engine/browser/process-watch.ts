import { readdir, readFile } from 'node:fs/promises';

/** The purpose of a process, from its command line; `browser` for the first one. */
export type ProcessKind = 'browser' | 'renderer' | 'other';

/** A process of a browser. */
export interface BrowserProcess {
  readonly pid: number;
  readonly kind: ProcessKind;
  /** Its private and shared memory, without mapped files. */
  readonly bytes: number;
  /** Processor time of the thread that takes and sends messages; of pages and the first process alone. */
  readonly messageSeconds: number;
  /** Of the process that draws for all pages alone. */
  readonly drawing: DrawingTimes | undefined;
}

/** What a process that draws has done since its start. */
export interface DrawingTimes {
  /** How often its first thread, through which all drawing goes, has waited for something. */
  readonly waits: number;
  /** Processor time of its threads, without that of the one that puts pictures together. */
  readonly cpuSeconds: number;
}

const MAX_PROCESSES = 2_000;
/** The name of that thread, in the first process and in the others, as far as Linux keeps it. */
const TAKES_MESSAGES = /\(Chrome_(?:IOThread|ChildIOT)/;
/** `USER_HZ` of Linux. */
const TICKS_PER_SECOND = 100;

/**
 * All processes of a browser, from its first process `pid` down: renderers, GPU, network and other
 * services. Empty except on Linux.
 */
export async function browserProcesses(pid: number): Promise<BrowserProcess[]> {
  const found: BrowserProcess[] = [];
  let pids = [pid];
  while (pids.length > 0 && found.length < MAX_PROCESSES) {
    const generation = await Promise.all(pids.map((each) => readProcess(each, each === pid)));
    found.push(...generation.filter((each) => each !== undefined));
    pids = (await Promise.all(pids.map(childProcesses))).flat();
  }
  return found;
}

async function readProcess(pid: number, isFirst: boolean): Promise<BrowserProcess | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const command = isFirst ? '' : await readFile(`/proc/${pid}/cmdline`, 'latin1');
    const bytes = kilobytes(status, 'RssAnon') + kilobytes(status, 'RssShmem');
    const isRenderer = command.includes('--type=renderer');
    const kind = isFirst ? 'browser' : isRenderer ? 'renderer' : 'other';
    const isDrawing = command.includes('--type=gpu-process');
    const drawing = isDrawing ? await drawingTimes(pid, status) : undefined;
    const messageSeconds =
      kind === 'other' ? 0 : await threadSeconds(pid, (stat) => TAKES_MESSAGES.test(stat));
    return { pid, kind, bytes, messageSeconds, drawing };
  } catch {
    // The process has just ended.
    return undefined;
  }
}

async function drawingTimes(pid: number, status: string): Promise<DrawingTimes> {
  const cpuSeconds = await threadSeconds(pid, (stat) => !stat.includes('(VizCompositor'));
  const waits = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  return { waits, cpuSeconds };
}

/** Processor time of a process's threads, of those whose `stat` is chosen. */
async function threadSeconds(pid: number, isChosen: (stat: string) => boolean): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`);
  const stats = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'latin1').catch(() => '')),
  );
  return stats.filter(isChosen).reduce((sum, each) => sum + secondsIn(each), 0);
}

/** Processor time in a `stat` of /proc, of a process or a thread. */
function secondsIn(stat: string): number {
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1_024;
}

async function childProcesses(pid: number): Promise<number[]> {
  // Chromium starts processes from several threads.
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => ''),
    ),
  );
  return lists.flatMap((list) => list.split(' ').filter((each) => each.trim() !== '')).map(Number);
}
