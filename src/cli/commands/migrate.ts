import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { startNode } from '../start-node.ts';

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
      const child = startNode(context, [program, '--from', from, '--to', to]);
      context.signal.addEventListener('abort', () => child.kill('SIGTERM'));
      const [code] = (await once(child, 'exit')) as [number | null];
      const known = [EXIT_CODE.ok, EXIT_CODE.usage, EXIT_CODE.refused].find(
        (each) => each === code,
      );
      context.setExitCode(known ?? EXIT_CODE.failed);
    });
}
