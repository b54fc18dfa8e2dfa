import { readdirSync, readFileSync } from 'node:fs';

/** What a process and its descendants have used. */
export interface TreeUse {
  /** Processor seconds, those of descendants that have ended included. */
  readonly cpuSeconds: number;
  /** Bytes of memory, what processes share divided among them. */
  readonly bytes: number;
}

/** Reads what `pid` and its descendants use, from /proc; `bytes` only if asked, for that takes long. */
export function readTree(pid: number, { memory = false } = {}): TreeUse {
  const children = new Map<number, number[]>();
  const ticks = new Map<number, number>();
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    const fields = read(`/proc/${name}/stat`)
      ?.replace(/^.*\) /s, '')
      .split(' ')
      .map(Number);
    if (fields === undefined) continue;
    const [, parent = 0] = fields;
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    // Its own time in user and kernel mode, and that of children it has waited for.
    ticks.set(
      Number(name),
      fields.slice(11, 15).reduce((sum, each) => sum + each, 0),
    );
  }
  const all: number[] = [];
  for (let next = [pid]; next.length > 0; next = next.flatMap((each) => children.get(each) ?? [])) {
    all.push(...next);
  }
  return {
    cpuSeconds: all.reduce((sum, each) => sum + (ticks.get(each) ?? 0), 0) / 100,
    bytes: memory ? all.reduce((sum, each) => sum + shareOfMemory(each), 0) : 0,
  };
}

function shareOfMemory(pid: number): number {
  const kilobytes = /^Pss:\s+(\d+) kB/m.exec(read(`/proc/${pid}/smaps_rollup`) ?? '')?.[1];
  return Number(kilobytes ?? 0) * 1_024;
}

/** Undefined for a process that has ended. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
