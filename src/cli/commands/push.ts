import { randomUUID } from 'node:crypto';
import { addAbortSignal } from 'node:stream';
import { Command, Option } from 'commander';
import type { PushError } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { describeFailure, type Pushed, type UrlToPush } from '../../client/client.ts';
import { MAX_RUN_ID_LENGTH } from '../../client/push-urls.ts';
import { isLost } from '../../client/retries.ts';
import { FieldError, usageError } from '../cli-error.ts';
import {
  type CommandContext,
  collect,
  openSession,
  type Session,
  wholeNumber,
} from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { createProgress } from '../progress.ts';
import { parseItem, parseParameters } from '../push-item.ts';
import { urlsOfSitemap } from '../sitemap-source.ts';
import {
  openUrlFile,
  readUrls,
  type UrlFormat,
  type UrlSource,
  urlsOfArguments,
} from '../url-source.ts';

interface PushOptions {
  readonly file?: string;
  readonly sitemap?: string;
  readonly since?: string;
  readonly format?: UrlFormat;
  readonly param: readonly string[];
  readonly queueTimeout?: number;
  readonly callbackHeaders?: string;
  readonly metadata?: string;
  readonly batch?: string;
  readonly closeBatch?: boolean;
  readonly delay?: number;
  readonly priority?: number;
  readonly unique?: boolean;
  readonly uniqueFor?: number;
  readonly notBefore?: string;
  readonly runId?: string;
  readonly batchSize: number;
  readonly concurrency: number;
  readonly patience: number;
  readonly quiet?: boolean;
}

/** `push`: puts URLs into a crawler's queue, however many. */
export function createPushCommand(context: CommandContext): Command {
  return new Command('push')
    .description(
      'Push URLs, from arguments, a file or standard input; a URL a line, NDJSON or CSV with parameters. Prints a rid and its URL for each.',
    )
    .argument('<crawler>', 'its name')
    .argument('[urls...]', 'the URLs; without URLs and --file, standard input')
    .option('--file <file>', 'read URLs from a file; .csv and .ndjson say their format')
    .option(
      '--sitemap <url>',
      'read URLs from a sitemap or an index of sitemaps, which the service requests',
    )
    .option('--since <time>', 'of the sitemap, leave out what has not changed since')
    .addOption(
      new Option('--format <format>', 'of the file or input').choices(['lines', 'ndjson', 'csv']),
    )
    .option('--param <name=value>', 'crawl parameter of every URL, may be repeated', collect, [])
    .option(
      '--queue-timeout <minutes>',
      'longest wait in the queue',
      wholeNumber('--queue-timeout', 0, 10_080),
    )
    .option('--callback-headers <text>', 'headers of the deliveries, name|value|name|value')
    .option('--metadata <json>', 'comes back with each result')
    .option('--batch <name>', 'the batch of every URL; the first push makes it')
    .option('--close-batch', 'close the batch when all URLs are pushed')
    .option('--priority <n>', 'a higher one goes first, default 5', wholeNumber('--priority', 0, 9))
    .option('--unique', 'queue a URL once while it waits or is crawled')
    .option(
      '--unique-for <seconds>',
      'queue a URL once within this time',
      wholeNumber('--unique-for', 1, 2_592_000),
    )
    .option('--delay <seconds>', 'earliest start, from now', wholeNumber('--delay', 0, 2_592_000))
    .option('--not-before <time>', 'earliest start, such as 2030-01-31T08:00:00Z')
    .option(
      '--run-id <id>',
      'repeat an interrupted push of the same input, within 24 hours, and queue only what is missing',
    )
    .option('--batch-size <n>', 'URLs in one call', wholeNumber('--batch-size', 1, 1_000), 500)
    .option('--concurrency <n>', 'calls at a time', wholeNumber('--concurrency', 1, 20), 4)
    .option(
      '--patience <seconds>',
      'how long to wait while nothing is accepted',
      wholeNumber('--patience', 0, 604_800),
      3_600,
    )
    .option('-q, --quiet', 'do not print rids')
    .addHelpText(
      'after',
      examples(
        'queued-crawler push shop https://example.com/1 https://example.com/2',
        'queued-crawler push shop --file urls.txt --param format=json > rids.txt',
        'queued-crawler push shop --file urls.txt --batch monday --close-batch --quiet',
        'queued-crawler push shop --sitemap https://example.com/sitemap.xml --since 2030-01-31',
        'zcat urls.csv.gz | queued-crawler push shop --format csv --run-id monday --quiet',
      ),
    )
    .action(async (crawler: string, urls: string[], options: PushOptions, command: Command) => {
      const { batch, closeBatch = false, runId } = options;
      if (closeBatch && batch === undefined) throw usageError('--close-batch needs --batch');
      if (runId === '' || (runId?.length ?? 0) > MAX_RUN_ID_LENGTH) {
        throw usageError(`--run-id must have 1 to ${MAX_RUN_ID_LENGTH} characters`);
      }
      using session = await openSession(context, command, { isPatient: true });
      const source = await openSource(context, session, urls, options);
      const { accepted, refused } = await push(session, crawler, source, options);
      // The program that writes the input may have been interrupted as well: then it ended early.
      session.signal.throwIfAborted();
      if (closeBatch) await close(session, crawler, batch ?? '', accepted);
      if (refused > 0) context.setExitCode(EXIT_CODE.partly);
    });
}

async function openSource(
  { stdin }: CommandContext,
  session: Session,
  urls: readonly string[],
  { file, format, sitemap, since }: PushOptions,
): Promise<UrlSource> {
  if (since !== undefined && sitemap === undefined) throw usageError('--since needs --sitemap');
  if (sitemap !== undefined) {
    if (urls.length > 0 || file !== undefined) throw usageError('give URLs, --file or --sitemap');
    return urlsOfSitemap(session, sitemap, since);
  }
  if (file !== undefined && urls.length > 0) throw usageError('give URLs or --file, not both');
  if (urls.length > 0) return urlsOfArguments(urls);
  if (file !== undefined && file !== '-') return openUrlFile(file, session.signal, format);
  if (stdin.isTTY === true)
    throw usageError('there are no URLs: give them as arguments, --file or input');
  return readUrls(addAbortSignal(session.signal, stdin), format);
}

/** Closes a batch. It does not exist when all URLs are duplicates, refused or absent: that is told. */
async function close(
  { client, output }: Session,
  crawler: string,
  batch: string,
  accepted: number,
): Promise<void> {
  try {
    await client.batches.closeBatch({ name: crawler, batch });
  } catch (error) {
    if (accepted > 0 || describeFailure(error).reason !== 'batch_not_found') throw error;
    output.note('no URL was queued for the batch, so there is nothing to close');
  }
}

/** Pushes everything, and returns how many URLs were queued and refused. */
async function push(
  { client, output, signal }: Session,
  crawler: string,
  source: UrlSource,
  options: PushOptions,
): Promise<{ readonly accepted: number; readonly refused: number }> {
  const lines = new WeakMap<object, number>();
  const items = read(source, options, lines, refuse, () => {
    hasItems = true;
  });
  const runId = options.runId ?? randomUUID();
  const progress = createProgress(output, 'pushed', source.share);
  let refused = 0;
  let duplicates = 0;
  // From then on URLs can be queued whose rids are not printed yet.
  let hasItems = false;
  const ignored = new Set<string>();

  async function refuse(line: number, url: string, error: Refusal): Promise<void> {
    refused += 1;
    const { code, message, field } = error;
    if (output.isJson)
      await output.json({
        line,
        url,
        error: { code, message, ...(field === '' ? {} : { field }) },
      });
    else {
      const what = url === '' ? '' : `${printable(url)}: `;
      output.note(`line ${line}: ${what}${printable(message)} (${printable(code)})`);
    }
    progress.add(1);
  }

  async function tell(pushed: Pushed): Promise<void> {
    const { item, rid, duplicate, ignoredParameters = [], error } = pushed;
    const line = lines.get(item as object) ?? 0;
    const url = typeof item === 'string' ? item : (item.url ?? '');
    if (error !== undefined) return refuse(line, url, error);
    if (options.quiet !== true) {
      await (output.isJson
        ? output.json({ line, url, rid, ...(duplicate ? { duplicate } : {}) })
        : output.line(`${rid} ${url}`));
    }
    if (duplicate) duplicates += 1;
    for (const name of ignoredParameters) ignored.add(name);
    progress.add(1);
  }

  try {
    const pushing = client.push(crawler, items, {
      runId,
      batchSize: options.batchSize,
      concurrency: options.concurrency,
      patienceMs: options.patience * 1_000,
      signal,
      onWait: ({ code }, delayMs) => progress.wait(code, delayMs),
    });
    for await (const pushed of pushing) await tell(pushed);
  } catch (error) {
    progress.end();
    const isKnown = progress.count > 0 || signal.aborted || options.runId !== undefined;
    // A call whose reply was lost may have queued URLs.
    if (hasItems && (isKnown || isLost(error))) {
      output.note(
        `${progress.count} URLs done, more may be queued; the same command with --run-id ${runId} does the rest`,
      );
    }
    throw error;
  }
  progress.end();
  if (ignored.size > 0) {
    const names = printable([...ignored].join(', '));
    output.note(`these parameters have no effect without the JavaScript token: ${names}`);
  }
  const accepted = progress.count - refused - duplicates;
  const more = duplicates === 0 ? {} : { duplicates };
  if (output.isJson) await output.json({ accepted, ...more, refused, run_id: runId });
  else {
    const again = duplicates === 0 ? '' : `, ${duplicates} queued before`;
    output.note(`${accepted} accepted${again}, ${refused} refused`);
  }
  return { accepted, refused };
}

/** Why a URL was not queued. */
type Refusal = Pick<PushError, 'code' | 'message' | 'field'>;

async function* read(
  source: UrlSource,
  options: PushOptions,
  lines: WeakMap<object, number>,
  refuse: (line: number, url: string, refusal: Refusal) => Promise<void>,
  onItem: () => void,
): AsyncGenerator<UrlToPush, void, undefined> {
  const parameters = parseParameters(options.param);
  const shared = {
    queue_timeout: options.queueTimeout,
    callback_headers: options.callbackHeaders,
    metadata: options.metadata,
    batch: options.batch,
    priority: options.priority,
    unique: options.unique,
    unique_for: options.uniqueFor,
    delay: options.delay,
    not_before: options.notBefore,
  };
  // What is wrong with the options is wrong with every line.
  parseItem({ ...shared, url: 'any' }, parameters);
  for await (const { line, values, fault } of source.items) {
    if (fault !== undefined) {
      await refuse(line, '', { code: 'invalid_json', message: fault, field: '' });
      continue;
    }
    // An empty cell of CSV is no value.
    const given = Object.entries(values).filter(([, value]) => value !== '');
    const item = parse(line, { ...shared, ...Object.fromEntries(given) });
    if (item instanceof FieldError) {
      const { field, message } = item;
      const url = typeof values.url === 'string' ? values.url : '';
      await refuse(line, url, { code: `invalid_${field}`, message, field });
      continue;
    }
    lines.set(item, line);
    onItem();
    yield item;
  }

  function parse(line: number, values: Readonly<Record<string, unknown>>) {
    try {
      return parseItem(values, parameters);
    } catch (error) {
      if (error instanceof FieldError) return error;
      throw usageError(`line ${line}: ${(error as Error).message}`);
    }
  }
}
