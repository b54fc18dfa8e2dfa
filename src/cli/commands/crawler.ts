import { Command } from 'commander';
import { type Crawler, CrawlerSchema } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { plainText, toPlain } from '../../client/message-json.ts';
import { type CommandContext, openSession, type Session } from '../command-context.ts';
import { addSettings, type SettingOptions, settingsFrom } from '../crawler-settings.ts';
import { examples } from '../examples.ts';
import { assertConfirmed, operationsOn } from '../operations.ts';
import { type Output, printable, printableValue } from '../output.ts';

interface CrawlerOptions extends SettingOptions {
  /** Confirms what cannot be undone. */
  readonly yes?: boolean;
}

/** `crawler`: what a crawler is made, told and asked. */
export function createCrawlerCommand(context: CommandContext): Command {
  const group = new Command('crawler').description('Create, list, change and remove crawlers.');

  const operation = operationsOn<CrawlerOptions>(context, group, 'crawler');

  addSettings(
    operation(
      'create',
      'Make a crawler; with --callback-url its results go there, otherwise to storage.',
      'create shop --concurrency 10',
      async ({ client, output }, name, options) => {
        const { crawler, created } = await client.crawlers.createCrawler({
          name,
          ...settingsFrom(options),
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
  addSettings(
    operation(
      'update',
      'Change settings of a crawler, at once.',
      'update shop --concurrency 50',
      async ({ client, output }, name, options) => {
        const before = await client.crawlers.getCrawler({ name });
        const settings = settingsFrom(options, before.crawler);
        const { crawler } = await client.crawlers.updateCrawler({
          name,
          ...settings,
          // Messages are written as a whole, with what was read of them.
          ...(hasMessage(settings) ? { etag: before.crawler?.etag ?? '' } : {}),
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
      assertConfirmed(yes, `every waiting URL of ${name} is removed`);
      const { purged } = await client.crawlers.purgeCrawler({ name });
      await tellPurged(output, name, purged);
    },
  ).option('--yes', 'really do it');
  operation(
    'delete',
    'Remove a crawler with its queue, for good.',
    'delete shop --yes',
    async ({ client, output }, name, { yes }) => {
      assertConfirmed(yes, `${name} and its queue are removed`);
      const { purged } = await client.crawlers.deleteCrawler({ name });
      await tellPurged(output, name, purged);
    },
  ).option('--yes', 'really do it');
  return group;
}

function tellPurged(output: Output, crawler: string, purged: bigint): Promise<void> {
  return output.tell({ crawler, purged: Number(purged) }, `${purged} URLs removed`);
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
  const [first = ['', ''], ...others] = rows.map(([name, value]) => [name, printableValue(value)]);
  await output.table(first, others);
}

function hasMessage(settings: object): boolean {
  return Object.values(settings).some((value) => typeof value === 'object');
}
