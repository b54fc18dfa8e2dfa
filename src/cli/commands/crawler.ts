import { Command } from 'commander';
import {
  type Crawler,
  CrawlerSchema,
  type Politeness,
} from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { usageError } from '../cli-error.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { type Output, printable } from '../output.ts';

interface CrawlerOptions {
  readonly callbackUrl?: string;
  readonly concurrency?: number;
  readonly deliveryConcurrency?: number;
  readonly maxRetries?: number;
  readonly unique?: boolean;
  readonly uniqueFor?: number;
  readonly retryWindowHours?: number;
  readonly maxPerHost?: number;
  readonly delayMs?: number;
  readonly robotsTxt?: boolean;
  readonly paceGroup?: string;
  readonly groupByDomain?: boolean;
  /** Confirms what cannot be undone. */
  readonly yes?: boolean;
}

/** `crawler`: what a crawler is made, told and asked. */
export function createCrawlerCommand(context: CommandContext): Command {
  const group = new Command('crawler').description('Create, list, change and remove crawlers.');

  /** Adds an operation on one crawler. */
  function operation(
    name: string,
    description: string,
    example: string,
    run: (session: Session, crawler: string, options: CrawlerOptions) => Promise<void>,
  ): Command {
    return group
      .command(name)
      .description(description)
      .argument('<crawler>', 'its name')
      .addHelpText('after', examples(`queued-crawler crawler ${example}`))
      .action(async (crawler: string, options: CrawlerOptions, command: Command) => {
        using session = await openSession(context, command);
        await run(session, crawler, options);
      });
  }

  withSettings(
    operation(
      'create',
      'Make a crawler; with --callback-url its results go there, otherwise to storage.',
      'create shop --concurrency 10',
      async ({ client, output }, name, options) => {
        const { crawler, created } = await client.crawlers.createCrawler({
          name,
          ...settingsOf(options),
        });
        if (crawler === undefined) return;
        await show(output, crawler, { created });
      },
    ),
  );
  group
    .command('list')
    .description('List crawlers by name.')
    .addHelpText(
      'after',
      examples('queued-crawler crawler list', 'queued-crawler --json crawler list | jq -r .name'),
    )
    .action(async (_options: unknown, command: Command) => {
      using session = await openSession(context, command);
      await list(session);
    });
  operation(
    'show',
    'Show a crawler and what it is doing.',
    'show shop',
    async ({ client, output }, name) => {
      const { crawler } = await client.crawlers.getCrawler({ name });
      if (crawler !== undefined) await show(output, crawler);
    },
  );
  withSettings(
    operation(
      'update',
      'Change settings of a crawler, at once.',
      'update shop --concurrency 50',
      async ({ client, output }, name, options) => {
        const before = isPolite(options) ? await client.crawlers.getCrawler({ name }) : undefined;
        const settings = settingsOf(options, before?.crawler?.politeness);
        const { crawler } = await client.crawlers.updateCrawler({
          name,
          ...settings,
          // Its politeness is written as a whole.
          ...(before?.crawler === undefined ? {} : { etag: before.crawler.etag }),
        });
        if (crawler !== undefined) await show(output, crawler);
      },
    ),
  );
  operation(
    'pause',
    'Stop crawling; pushes are still taken.',
    'pause shop',
    async ({ client, output }, name) => {
      const { crawler } = await client.crawlers.pauseCrawler({ name });
      if (crawler !== undefined) await show(output, crawler);
    },
  );
  operation('unpause', 'Continue crawling.', 'unpause shop', async ({ client, output }, name) => {
    const { crawler } = await client.crawlers.unpauseCrawler({ name });
    if (crawler !== undefined) await show(output, crawler);
  });
  operation(
    'purge',
    'Remove every waiting URL of a crawler, for good.',
    'purge shop --yes',
    async ({ client, output }, name, { yes }) => {
      confirm(yes, `every waiting URL of ${name} is removed`);
      const { purged } = await client.crawlers.purgeCrawler({ name });
      await tellPurged(output, name, purged);
    },
  ).option('--yes', 'really do it');
  operation(
    'delete',
    'Remove a crawler with its queue, for good.',
    'delete shop --yes',
    async ({ client, output }, name, { yes }) => {
      confirm(yes, `${name} and its queue are removed`);
      const { purged } = await client.crawlers.deleteCrawler({ name });
      await tellPurged(output, name, purged);
    },
  ).option('--yes', 'really do it');
  return group;
}

/** The options of the settings; which of them suit is for the service to say. */
function withSettings(command: Command): void {
  const number = (flag: string, description: string) =>
    command.option(`${flag} <n>`, description, wholeNumber(flag, 0, 10_000_000));
  command.option('--callback-url <url>', 'where results are posted');
  number('--concurrency', 'URLs crawled at once');
  number('--delivery-concurrency', 'results posted at once; 0 for no bound of its own');
  number('--max-retries', 'retries of a crawl that fails for a transient reason');
  number('--retry-window-hours', 'hours in which retries are made');
  number('--max-per-host', 'politeness: requests to one host at once; 0 for no limit');
  number('--delay-ms', 'politeness: milliseconds between requests to one host');
  command.option('--robots-txt', 'politeness: obey robots.txt');
  command.option('--pace-group <name>', 'politeness: crawlers with the same name share it');
  command.option('--group-by-domain', 'count all hosts of a registrable domain as one host');
  command.option('--no-group-by-domain', 'count each host by itself');
  command.option('--unique', 'queue each URL once, unless its push says otherwise');
  command.option('--no-unique', 'queue repeated URLs, too');
  number('--unique-for', 'seconds for which a URL is queued once; 0 while it waits or is crawled');
}

function isPolite(options: CrawlerOptions): boolean {
  const { maxPerHost, delayMs, robotsTxt, paceGroup } = options;
  return [maxPerHost, delayMs, robotsTxt, paceGroup].some((each) => each !== undefined);
}

/** The settings that the options name; the rest of the politeness stays as it was. */
function settingsOf(options: CrawlerOptions, before?: Politeness) {
  const { maxPerHost, delayMs, robotsTxt, callbackUrl, groupByDomain, unique, ...numbers } =
    options;
  const names = [
    'concurrency',
    'deliveryConcurrency',
    'maxRetries',
    'retryWindowHours',
    'uniqueFor',
  ] as const;
  const given = names.flatMap((name) =>
    numbers[name] === undefined ? [] : [[name, numbers[name]]],
  );
  return {
    ...(Object.fromEntries(given) as Partial<Record<(typeof names)[number], number>>),
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
    ...(groupByDomain === undefined ? {} : { groupByDomain }),
    ...(unique === undefined ? {} : { unique }),
    ...(isPolite(options)
      ? {
          politeness: {
            maxPerHost: maxPerHost ?? before?.maxPerHost ?? 0,
            delayMs: delayMs ?? before?.delayMs ?? 0,
            robotsTxt: robotsTxt ?? before?.robotsTxt ?? false,
            hosts: before?.hosts ?? [],
            group: options.paceGroup ?? before?.group ?? '',
          },
        }
      : {}),
  };
}

function confirm(yes: boolean | undefined, what: string): void {
  if (yes !== true) throw usageError(`${what}; give --yes to do it`);
}

async function tellPurged(output: Output, crawler: string, purged: bigint): Promise<void> {
  if (output.isJson) await output.json({ crawler, purged: Number(purged) });
  else await output.line(`${purged} URLs removed`);
}

async function list({ client, output }: Session): Promise<void> {
  const rows: string[][] = [];
  let pageToken = '';
  do {
    const page = await client.crawlers.listCrawlers({ pageSize: 1_000, pageToken });
    for (const crawler of page.crawlers) {
      if (output.isJson) await output.json(toPlain(CrawlerSchema, crawler));
      else rows.push(row(output, crawler));
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  if (output.isJson) return;
  await output.table(['NAME', 'STATUS', 'TOKEN', 'CONCURRENCY', 'RESULTS TO'], rows);
}

function row(output: Output, crawler: Crawler): string[] {
  const plain = toPlain(CrawlerSchema, crawler);
  const status = plainText(plain.status);
  const by = plain.paused_by === undefined ? '' : ` by ${plainText(plain.paused_by)}`;
  return [
    crawler.name,
    output.paint(status === 'running' ? 'green' : 'yellow', status + by),
    plainText(plain.token_type),
    String(crawler.concurrency),
    printable(crawler.callbackUrl ?? plainText(plain.delivery)),
  ];
}

/** All fields of a crawler, one a line. */
async function show(output: Output, crawler: Crawler, more: object = {}): Promise<void> {
  const plain = { ...toPlain(CrawlerSchema, crawler), ...more };
  if (output.isJson) return output.json(plain);
  const rows = Object.entries(plain).flatMap(([name, value]): [string, unknown][] =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(([inner, each]) => [`${name}.${inner}`, each])
      : [[name, value]],
  );
  const [first = ['', ''], ...others] = rows.map(([name, value]) => [
    name,
    printable(plainText(value)),
  ]);
  await output.table(first, others);
}
