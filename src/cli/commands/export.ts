import { Command, Option } from 'commander';
import { defined } from '../../domain/defined.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { openExportFile } from '../export-file.ts';
import { EXPORT_FORMATS, type ExportFormat } from '../export-formats.ts';
import { createProgress } from '../progress.ts';

interface ExportOptions {
  readonly batch?: string;
  readonly format?: ExportFormat;
  readonly to: string;
  readonly follow?: boolean;
  readonly remove?: boolean;
  readonly patience: number;
}

/** How much is written before the place is kept. */
const KEEP_EVERY = 200;
const KEEP_MS = 1_000;

/** `export`: the stored results of a crawler in one file. */
export function createExportCommand(context: CommandContext): Command {
  return new Command('export')
    .description(
      'Write the stored results of a crawler or batch into one file: NDJSON, CSV without the pages, or WARC 1.1. Continues where it was.',
    )
    .argument('<crawler>', 'its name')
    .requiredOption('--to <file>', 'the file; .ndjson, .csv, .warc and .warc.gz say its format')
    .addOption(new Option('--format <format>', 'of the file').choices(Object.keys(EXPORT_FORMATS)))
    .option('--batch <name>', 'only results of this batch')
    .option('--follow', 'continue with new results until interrupted')
    .option('--remove', 'remove results from storage once they are written')
    .option(
      '--patience <seconds>',
      'how long to wait while the service does not answer',
      wholeNumber('--patience', 0, 604_800),
      600,
    )
    .addHelpText(
      'after',
      examples(
        'queued-crawler export shop --to shop.ndjson',
        'queued-crawler export shop --batch monday --to monday.warc.gz',
      ),
    )
    .action(async (crawler: string, options: ExportOptions, command: Command) => {
      const format = options.format ?? formatOf(options.to);
      using session = await openSession(context, command, { isPatient: true });
      await run(session, crawler, format, options);
    });
}

function formatOf(path: string): ExportFormat {
  const name = path.toLowerCase().replace(/\.gz$/, '');
  const found = Object.keys(EXPORT_FORMATS).find((format) => name.endsWith(`.${format}`));
  if (found === undefined) throw usageError('give --format: the name of the file does not say it');
  return found as ExportFormat;
}

async function run(
  { client, output, signal, tellWait }: Session,
  crawler: string,
  format: ExportFormat,
  { batch, to, follow = false, remove = false, patience }: ExportOptions,
): Promise<void> {
  const { begin, write } = EXPORT_FORMATS[format];
  const gzip = to.toLowerCase().endsWith('.gz');
  if (gzip && format !== 'warc') throw usageError('only warc is written compressed');
  const progress = createProgress(output, 'exported');
  await using file = await openExportFile(to);
  let token = file.token ?? '';
  let left = 0;
  let kept = { count: 0, at: performance.now() };
  const keep = async (): Promise<void> => {
    await file.keep(token);
    kept = { count: progress.count, at: performance.now() };
  };
  try {
    if (file.token === undefined) {
      await file.write(await begin(gzip));
      await keep();
    }
    const pages = client.everyResult({
      crawler,
      follow,
      patienceMs: patience * 1_000,
      onLost: tellWait,
      signal,
      ...defined({ batch }),
      resumeToken: token,
    });
    for await (const { resumeToken, ...page } of pages) {
      const bytes = await write(page, gzip);
      if (bytes === undefined) left += 1;
      else await file.write(bytes);
      token = resumeToken;
      progress.add(1);
      const isDue = performance.now() - kept.at > KEEP_MS;
      if (!isDue && progress.count - kept.count < KEEP_EVERY) continue;
      await keep();
      if (remove) await acknowledge(resumeToken);
    }
    await keep();
  } catch (error) {
    if (token === '') await file.discard();
    else await keep();
    throw error;
  } finally {
    progress.end();
  }
  if (remove && token !== '') await acknowledge(token);
  const why = left === 0 ? '' : `, of which ${left} have no response and are left out`;
  if (output.isJson) await output.json({ file: to, results: progress.count, left_out: left });
  else output.note(`${progress.count} results${why}`);

  /** Only what is in the file is removed. */
  async function acknowledge(resumeToken: string): Promise<void> {
    await client.storage.acknowledgeResults({ crawler, batch: batch ?? '', resumeToken });
  }
}
