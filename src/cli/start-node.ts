import { type ChildProcess, spawn } from 'node:child_process';
import { STOPS_WITH_PARENT, stopsWithParent, whenOrphaned } from '../when-orphaned.ts';
import type { CommandContext } from './command-context.ts';

/** Starts Node in a process of its own, which stops with this one. */
export function startNode(
  context: CommandContext,
  args: readonly string[],
  env = context.env,
): ChildProcess {
  const child = spawn(process.execPath, args, {
    env: { ...env, [STOPS_WITH_PARENT]: '1' },
    stdio: 'inherit',
  });
  // npx was told to stop, and does not tell.
  if (context.env.npm_lifecycle_event !== undefined || stopsWithParent(context.env)) {
    whenOrphaned(() => child.kill('SIGTERM'));
  }
  return child;
}
