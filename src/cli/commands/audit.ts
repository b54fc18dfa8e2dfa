import { Command, Option } from 'commander';
import {
  AuditActor,
  AuditRecordSchema,
} from '../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import { type CommandContext, openSession, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { printPages } from '../print-pages.ts';
import { toTimestamp } from '../timestamp-option.ts';

const ACTORS = {
  normal: AuditActor.NORMAL,
  javascript: AuditActor.JAVASCRIPT,
  operator: AuditActor.OPERATOR,
} as const;

interface Options {
  readonly by?: keyof typeof ACTORS;
  readonly crawler?: string;
  readonly method?: string;
  readonly since?: string;
  readonly limit: number;
  readonly csv?: true;
}

const CSV_FIELDS = ['at', 'by', 'method', 'crawler', 'remote', 'request_id', 'changes'] as const;

/** `audit`: who changed what in the account. */
export function createAuditCommand(context: CommandContext): Command {
  return new Command('audit')
    .description(
      'List who changed what in the account, newest first; kept for 90 days, the latest 10,000.',
    )
    .addOption(new Option('--by <who>', 'only changes by').choices(Object.keys(ACTORS)))
    .option('--crawler <name>', 'only changes of this crawler')
    .option('--method <name>', 'only this method, such as UpdateCrawler')
    .option('--since <time>', 'only changes from this time on, such as 2026-01-31')
    .option('--limit <n>', 'most records', wholeNumber('--limit', 1, 10_000), 100)
    .option('--csv', 'print CSV')
    .addHelpText(
      'after',
      examples(
        'queued-crawler audit --crawler shop',
        'queued-crawler --json audit --limit 10000 > audit.ndjson',
        'queued-crawler audit --csv --since 2026-01-31 > audit.csv',
      ),
    )
    .action(async (options: Options, command: Command) => {
      const { by, crawler = '', method = '', since, limit, csv } = options;
      const filter = {
        crawler,
        method,
        ...(by === undefined ? {} : { by: ACTORS[by] }),
        ...(since === undefined ? {} : { from: toTimestamp('--since', since) }),
      };
      using session = await openSession(context, command);
      await printPages(session.output, limit, {
        desc: AuditRecordSchema,
        async read(pageSize, pageToken) {
          const request = { ...filter, pageSize, pageToken };
          const found = await session.client.activity.listAuditRecords(request);
          return { items: found.records, nextPageToken: found.nextPageToken };
        },
        csv: csv && CSV_FIELDS,
        none: 'nothing was changed',
        heading: ['AT', 'BY', 'METHOD', 'CRAWLER', 'FROM', 'CHANGES'],
        row: ({ at, by: who, method: name, crawler: of, remote, changes }) => {
          return [at, who, name, of, remote, changes];
        },
      });
    });
}
