import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { eventually } from '../eventually.ts';
import { type ServiceProcess, startProcess } from '../service-process.ts';

/** Commands that a driver has sent, by name and collection: `find jobs`. */
export type CommandCounts = Readonly<Record<string, number>>;

/** A service process whose driver is watched. */
export interface CountedProcess extends ServiceProcess {
  /** Commands sent since it started, without those by which the driver watches the server. */
  commands(): Promise<CommandCounts>;
}

/** What makes a process of Node count its commands, as a value of `NODE_OPTIONS`. */
export const COUNTING = `--import ${pathToFileURL(join(import.meta.dirname, 'count-commands.ts')).href}`;

/** Starts the service on MongoDB, with its commands counted in the driver. */
export async function startCountedProcess(
  env: Readonly<Record<string, string>>,
): Promise<CountedProcess> {
  const service = await startProcess({ ...env, NODE_OPTIONS: COUNTING });
  const url = await eventually(() => countsAddress(service.output));
  return Object.assign(service, { commands: () => readCommands(url) });
}

/** The address of the counts, from what the process printed. Throws while it is not there. */
export function countsAddress(output: string): string {
  const url = /^Commands: (\S+)$/m.exec(output)?.[1];
  if (url === undefined) throw new Error('the process does not say where it counts');
  return url;
}

/** Reads the counts of a process. */
export async function readCommands(url: string): Promise<CommandCounts> {
  return (await (await fetch(url)).json()) as CommandCounts;
}

/** What was sent between two readings. */
export function commandsBetween(before: CommandCounts, after: CommandCounts): CommandCounts {
  return Object.fromEntries(
    Object.entries(after)
      .map(([key, count]) => [key, count - (before[key] ?? 0)] as const)
      .filter(([, count]) => count > 0)
      .toSorted((left, right) => right[1] - left[1]),
  );
}

/** All commands of some counts together. */
export function totalOf(counts: CommandCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
