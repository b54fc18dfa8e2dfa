import { access, constants, rm, stat, writeFile } from 'node:fs/promises';
import { Command } from 'commander';
import { CrawlResponseSchema } from '../../../gen/queuedcrawler/v1/push_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, collect, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';
import { bodyJson } from '../page-file.ts';
import { parseParameters } from '../push-item.ts';

interface CrawlOptions {
  readonly param: readonly string[];
  readonly output?: string;
  readonly store?: boolean;
}

/** The service's own limit, and some time to wait for a browser. */
const TIMEOUT_MS = 200_000;

/** `crawl`: one URL, now. */
export function createCrawlCommand(context: CommandContext): Command {
  return new Command('crawl')
    .description('Crawl one URL now, without a queue, and print the page.')
    .argument('<url>', 'the URL')
    .option('--param <name=value>', 'crawl parameter, may be repeated', collect, [])
    .option('-o, --output <file>', 'write the page to a file')
    .option('--store', 'keep a copy in storage')
    .addHelpText(
      'after',
      examples(
        'queued-crawler crawl https://example.com/',
        'queued-crawler crawl https://example.com/ --param format=md -o example.md',
        'queued-crawler --javascript crawl https://example.com/ --param page_wait=2000',
      ),
    )
    .action(async (url: string, options: CrawlOptions, command: Command) => {
      using session = await openSession(context, command);
      const { client, output, signal } = session;
      if (options.output !== undefined) await assertWritable(options.output);
      const result = await client.pushes.crawl(
        {
          url,
          parameters: parseParameters(options.param),
          ...(options.store === true ? { store: true } : {}),
        },
        { signal, timeoutMs: TIMEOUT_MS },
      );
      const { cbStatus, originalStatus, failure } = result;
      if (options.output !== undefined) await writeFile(options.output, result.body);
      if (output.isJson) {
        const { body: _body, ...rest } = toPlain(CrawlResponseSchema, result);
        const page = options.output === undefined ? bodyJson(result.body) : {};
        await output.json({ ...rest, ...page });
      } else {
        if (options.output === undefined) await output.bytes(result.body);
        const why = failure === undefined ? '' : ` ${failure}`;
        const rid = result.rid === undefined ? '' : ` rid ${result.rid}`;
        output.note(
          `cb_status ${cbStatus}${why}, original_status ${originalStatus}, ${result.body.byteLength} bytes, ${printable(result.url)}${rid}`,
        );
      }
      if (cbStatus !== 200) context.setExitCode(EXIT_CODE.failed);
    });
}

/** Throws when a file cannot be written; leaves no file that was not there. */
async function assertWritable(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) throw usageError(`${path} is a folder, not a file`);
  if (found !== undefined) return access(path, constants.W_OK);
  await writeFile(path, '', { flag: 'wx' });
  await rm(path);
}
