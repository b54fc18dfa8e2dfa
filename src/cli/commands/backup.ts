import { Command } from 'commander';
import { backupFolder } from '../../backup/backup-folder.ts';
import { type FetchProgress, fetchBackup, progressText } from '../../backup/fetch-backup.ts';
import { type CommandContext, noAdminToken, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';

/** `backup`: a backup of the embedded database, which the running service makes. */
export function createBackupCommand(context: CommandContext): Command {
  return new Command('backup')
    .description('Back up the embedded database while the service runs, and check the copy.')
    .argument(
      '<file>',
      'where the backup goes; a file that exists is replaced once the backup is whole',
    )
    .option('--data-dir <folder>', 'read this folder instead; the service must be stopped')
    .addHelpText(
      'after',
      examples(
        'queued-crawler backup crawler.db',
        'queued-crawler backup crawler.db --data-dir /var/lib/queued-crawler',
      ),
    )
    .action(async (file: string, options: { dataDir?: string }, command: Command) => {
      using session = await openSession(context, command);
      const { settings, output, signal } = session;
      const onProgress = (progress: FetchProgress): void => output.progress(progressText(progress));
      const { dataDir } = options;
      if (dataDir === undefined && settings.adminToken === undefined) {
        throw noAdminToken();
      }
      const content =
        dataDir === undefined
          ? await fetchBackup({
              url: settings.url,
              adminToken: settings.adminToken ?? '',
              file,
              onProgress,
              signal,
              ...(settings.ca === undefined ? {} : { ca: settings.ca }),
            })
          : await backupFolder({ dataDir, file, onProgress });
      const { jobs, results } = content;
      const text = `Backed up to ${file}: ${jobs} URLs, ${results} results.`;
      await output.tell({ file, ...content }, text);
    });
}
