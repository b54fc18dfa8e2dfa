import { readdir, readFile } from 'node:fs/promises';

/** What a process of a browser is for, as its command line says; `browser` for the first. */
export type ProcessKind = 'browser' | 'renderer' | 'other';

/** A process of a browser. */
export interface BrowserProcess {
  readonly pid: number;
  readonly kind: ProcessKind;
  /** Memory of its own and shared with others of the tree, without files. */
  readonly bytes: number;
}

const MAX_PROCESSES = 2_000;

/**
 * All processes of the browser that `pid` began, that one first: renderers, GPU, network and other
 * services. Empty unless on Linux.
 */
export async function browserProcesses(pid: number): Promise<BrowserProcess[]> {
  const found: BrowserProcess[] = [];
  let pids = [pid];
  while (pids.length > 0 && found.length < MAX_PROCESSES) {
    const generation = await Promise.all(pids.map((each) => processOf(each, each === pid)));
    found.push(...generation.filter((each) => each !== undefined));
    pids = (await Promise.all(pids.map(childrenOf))).flat();
  }
  return found;
}

async function processOf(pid: number, isFirst: boolean): Promise<BrowserProcess | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    const command = isFirst ? '' : await readFile(`/proc/${pid}/cmdline`, 'latin1');
    const bytes = kilobytes(status, 'RssAnon') + kilobytes(status, 'RssShmem');
    const isRenderer = command.includes('--type=renderer');
    return { pid, kind: isFirst ? 'browser' : isRenderer ? 'renderer' : 'other', bytes };
  } catch {
    // It has just ended.
    return undefined;
  }
}

function kilobytes(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1_024;
}

async function childrenOf(pid: number): Promise<number[]> {
  // Chromium starts its processes from several threads.
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => ''),
    ),
  );
  return lists.flatMap((list) => list.split(' ').filter((each) => each.trim() !== '')).map(Number);
}
