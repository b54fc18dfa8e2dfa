import { Command } from 'commander';
import { restoreBackup } from '../../backup/restore-backup.ts';
import { defined } from '../../domain/defined.ts';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';

/** `restore`: puts a backup into a folder that no service uses. */
export function createRestoreCommand(context: CommandContext): Command {
  return new Command('restore')
    .description(
      'Put a backup of the embedded database into a folder. The service must be stopped.',
    )
    .argument('<file>', 'the backup')
    .option('--data-dir <folder>', 'DATA_DIR of the service', './data')
    .option('--replace', 'replace a database that is there; it is kept next to the restored one')
    .addHelpText(
      'after',
      examples(
        'queued-crawler restore crawler.db --data-dir /var/lib/queued-crawler',
        'queued-crawler restore crawler.db --replace',
      ),
    )
    .action(
      async (file: string, options: { dataDir: string; replace?: boolean }, command: Command) => {
        using session = await openSession(context, command);
        const { output } = session;
        const { dataDir, replace = false } = options;
        const { content, kept } = await restoreBackup({ file, dataDir, replace });
        const { jobs, results } = content;
        const text = `Restored into ${dataDir}: ${jobs} URLs, ${results} results.`;
        await output.tell({ ...content, ...defined({ kept }) }, text);
        if (kept !== undefined) output.note(`What was there is in ${kept}.`);
      },
    );
}
