import { createInterface } from 'node:readline';
import { Command } from 'commander';
import { type CrawledPage, describeFailure } from '../../client/client.ts';
import { defined } from '../../domain/defined.ts';
import { CliError, usageError } from '../cli-error.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { bodyJson, openPageFolder, type PageFolder, placeFile, resultFacts } from '../page-file.ts';
import { createProgress } from '../progress.ts';

interface ResultsOptions {
  readonly crawler?: string;
  readonly batch?: string;
  readonly all?: boolean;
  readonly follow?: boolean;
  readonly to?: string;
  readonly resume?: string;
  readonly remove?: boolean;
  readonly patience: number;
}

/** How often a stream's position is saved: by number of results and by time. */
const KEEP_EVERY = 100;
const KEEP_MS = 500;

const MISSING =
  'neither queued nor stored; the rid is unknown, or its result has expired, was removed or went to a callback URL';

/** `results`: what crawls brought, into a folder or as NDJSON. */
export function createResultsCommand(context: CommandContext): Command {
  return new Command('results')
    .description(
      'Write results into a folder, or print them as NDJSON: those of some rids, which it waits for, or all of a crawler.',
    )
    .argument('[rids...]', 'the rids; without them, the first words of the lines of standard input')
    .option('--crawler <name>', 'all results of a crawler, oldest first')
    .option('--batch <name>', 'of the crawler, only results of this batch')
    .option('--all', 'all results of the token')
    .option('--follow', 'with --crawler or --all: continue with new results until interrupted')
    .option('--to <folder>', 'write RID.html (or what it is) and RID.json; continues where it was')
    .option(
      '--resume <file>',
      'with --crawler or --all, without --to: keep the place in this file, and continue from it',
    )
    .option('--remove', 'remove results from storage once they are written')
    .option(
      '--patience <seconds>',
      'how long to wait while no result comes, or the service does not answer',
      wholeNumber('--patience', 0, 604_800),
      600,
    )
    .addHelpText(
      'after',
      examples(
        'queued-crawler push shop --file urls.txt | queued-crawler results --to pages',
        'queued-crawler results --crawler shop --follow --to pages --remove',
        'queued-crawler --json results --all --resume place.txt >> results.ndjson',
      ),
    )
    .action(async (rids: string[], options: ResultsOptions, command: Command) => {
      using session = await openSession(context, command, { isPatient: true });
      const isStream = options.crawler !== undefined || options.all === true;
      if (isStream && rids.length > 0) throw usageError('give rids or a crawler, not both');
      if (!isStream && options.follow === true)
        throw usageError('--follow needs --crawler or --all');
      const folder =
        options.to === undefined ? undefined : await openPageFolder(options.to, streamOf(options));
      if (isStream) await takeStream(session, folder, options);
      else {
        const source = rids.length > 0 ? rids : readRids(context);
        await takeRids(session, folder, source, options);
      }
    });
}

/** The name of the stream whose place a folder keeps. A batch has a stream of its own. */
function streamOf({ crawler = 'all', batch }: ResultsOptions): string {
  return batch === undefined ? crawler : `${crawler}/${batch}`;
}

async function* readRids({ stdin }: CommandContext): AsyncGenerator<string, void, undefined> {
  if (stdin.isTTY === true) throw usageError('there are no rids: give them, --crawler or --all');
  for await (const line of createInterface({ input: stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
    const rid = line.startsWith('{')
      ? (JSON.parse(line) as { rid?: string }).rid
      : line.trim().split(/\s/, 1)[0];
    if (rid !== undefined && rid !== '') yield rid;
  }
}

/** Writes one result to where results go. */
async function write(
  { output }: Session,
  folder: PageFolder | undefined,
  page: CrawledPage,
): Promise<void> {
  if (folder !== undefined) await folder.write(page);
  if (output.isJson || (folder === undefined && !output.isTerminal)) {
    const body = folder === undefined ? bodyJson(page.body) : {};
    await output.json({ ...resultFacts(page), ...body });
  } else if (folder === undefined) {
    const why = page.failure === undefined ? '' : ` ${page.failure}`;
    const status = output.paint(page.cbStatus === 200 ? 'green' : 'red', `${page.cbStatus}${why}`);
    const size = `${page.body.byteLength} bytes`;
    await output.line(
      `${page.rid}  ${status}  ${page.originalStatus}  ${size}  ${printable(page.url)}`,
    );
  }
}

/** Waits for the results of rids. Those that the folder has are not asked for again. */
async function takeRids(
  session: Session,
  folder: PageFolder | undefined,
  rids: Iterable<string> | AsyncIterable<string>,
  options: ResultsOptions,
): Promise<void> {
  const { client, output, signal } = session;
  const progress = createProgress(output, 'results');
  const missing: string[] = [];
  async function* wanted(): AsyncGenerator<string, void, undefined> {
    for await (const rid of rids) {
      if (folder === undefined || !(await folder.has(rid))) yield rid;
    }
  }
  try {
    const pages = client.results(wanted(), {
      remove: options.remove === true,
      patienceMs: options.patience * 1_000,
      onMissing(rid) {
        missing.push(rid);
        output.note(`${printable(rid)}: ${MISSING}`);
      },
      signal,
    });
    for await (const page of pages) {
      await write(session, folder, page);
      progress.add(1);
    }
  } catch (error) {
    const { code, message } = describeFailure(error);
    if (code === 'deadline_exceeded') {
      throw new CliError(`${progress.count} results; ${message}`, EXIT_CODE.partly);
    }
    throw error;
  } finally {
    progress.end();
  }
  const told = `${progress.count} results`;
  if (missing.length > 0) {
    const exitCode = progress.count > 0 ? EXIT_CODE.partly : EXIT_CODE.notFound;
    throw new CliError(`${told}; ${missing.length} are missing`, exitCode);
  }
  output.note(told);
}

/** Takes results in their order, and keeps the place that it has come to. */
async function takeStream(
  session: Session,
  folder: PageFolder | undefined,
  options: ResultsOptions,
): Promise<void> {
  const { client, output, signal, tellWait } = session;
  const { crawler, batch, follow = false, resume } = options;
  const progress = createProgress(output, 'results');
  const kept = folder ?? (resume === undefined ? undefined : placeFile(resume));
  let token = await kept?.readToken();
  let since = { count: 0, at: performance.now() };

  async function keep(): Promise<void> {
    if (token !== undefined) await kept?.writeToken(token);
    since = { count: progress.count, at: performance.now() };
  }

  try {
    const pages = client.everyResult({
      ...defined({ crawler, batch, resumeToken: token }),
      follow,
      acknowledge: options.remove === true,
      patienceMs: options.patience * 1_000,
      onLost: tellWait,
      signal,
    });
    for await (const { resumeToken, ...page } of pages) {
      await write(session, folder, page);
      token = resumeToken;
      progress.add(1);
      const isDue = performance.now() - since.at > KEEP_MS;
      if (isDue || progress.count - since.count >= KEEP_EVERY) await keep();
    }
  } finally {
    progress.end();
    await keep();
  }
  output.note(`${progress.count} results`);
}
