import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { STOPS_WITH_PARENT, stopsWithParent, whenOrphaned } from '../../when-orphaned.ts';
import type { CommandContext } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';

/** `migrate`: copies the embedded database to MongoDB, in a process of its own. */
export function createMigrateCommand(context: CommandContext): Command {
  return new Command('migrate')
    .description("Copy a stopped service's embedded database to MongoDB, or continue such a copy.")
    .requiredOption('--from <folder>', 'DATA_DIR of the service, which must be stopped')
    .requiredOption('--to <uri>', 'connection string of an empty database')
    .addHelpText(
      'after',
      examples('queued-crawler migrate --from ./data --to mongodb://127.0.0.1/crawler'),
    )
    .action(async ({ from, to }: { from: string; to: string }) => {
      const program = fileURLToPath(new URL('../../migrate/main.ts', import.meta.url));
      const child = spawn(process.execPath, [program, '--from', from, '--to', to], {
        env: { ...context.env, [STOPS_WITH_PARENT]: '1' },
        stdio: 'inherit',
      });
      context.signal.addEventListener('abort', () => child.kill('SIGTERM'));
      // npx was told to stop, and does not tell.
      if (context.env.npm_lifecycle_event !== undefined || stopsWithParent(context.env)) {
        whenOrphaned(() => child.kill('SIGTERM'));
      }
      const [code] = (await once(child, 'exit')) as [number | null];
      const known = [EXIT_CODE.ok, EXIT_CODE.usage, EXIT_CODE.refused].find(
        (each) => each === code,
      );
      context.setExitCode(known ?? EXIT_CODE.failed);
    });
}
