import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

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
