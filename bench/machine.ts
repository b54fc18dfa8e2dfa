import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';

/** The machine and the versions that figures were measured with, in a sentence. */
export function describeMachine(versions: Readonly<Record<string, string>>): string {
  const model = cpus()[0]?.model.trim() ?? 'an unknown processor';
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const day = new Date().toISOString().slice(0, 10);
  const list = Object.entries({ Node: process.versions.node, ...versions })
    .map(([name, version]) => `${name} ${version}`)
    .join(', ');
  return `${availableParallelism()} cores of ${model}, shared by all processes, ${memory}; ${list}; ${day}.`;
}

/** What to say about a machine that others use too; undefined when it is idle. */
export function busyWarning(): string | undefined {
  const [load = 0] = loadavg();
  if (load < availableParallelism() / 2) return undefined;
  return `The machine was busy before the start (load ${load.toFixed(1)}): these figures mean little.`;
}

/** The version of a package that is installed. */
export function packageVersion(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

/** The version that a program prints of itself. */
export function programVersion(program: string, pattern: RegExp): string {
  const output = execFileSync(program, ['--version'], { encoding: 'utf8' });
  return pattern.exec(output)?.[1] ?? 'of unknown version';
}

/** A machine counts as idle when its processors have been for this part of {@link LOOK_MS}. */
const IDLE = 0.9;
const LOOK_MS = 500;
const LONGEST_WAIT_MS = 20_000;

/**
 * Waits until the machine is idle, at most 20 s: what a database does after a crawl, or a push, would
 * be charged to what is measured next.
 */
export async function untilIdle(): Promise<void> {
  const until = performance.now() + LONGEST_WAIT_MS;
  let before = processorTimes();
  let idle = 0;
  while (idle < IDLE && performance.now() < until) {
    await wait(LOOK_MS);
    const now = processorTimes();
    idle = (now.idle - before.idle) / (now.all - before.all);
    before = now;
  }
}

/** Of all processors since the machine was started, in milliseconds. */
function processorTimes(): { readonly idle: number; readonly all: number } {
  const times = cpus().flatMap((each) => Object.entries(each.times));
  const sum = (some: typeof times): number => some.reduce((total, [, ms]) => total + ms, 0);
  return { idle: sum(times.filter(([kind]) => kind === 'idle')), all: sum(times) };
}
