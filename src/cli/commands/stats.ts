import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { CrawlerStatus } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  type CrawlerStats,
  type GetStatsResponse,
  GetStatsResponseSchema,
} from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { type CommandContext, openSession, type Session, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { sparkline } from '../sparkline.ts';

interface StatsOptions {
  readonly from?: string;
  readonly to?: string;
  readonly watch?: number | true;
}

/** Days of the sparklines. */
const DAYS = 14;
const CLEAR = '\u001b[H\u001b[2J';

/** `stats`: all crawlers in numbers. */
export function createStatsCommand(context: CommandContext): Command {
  return new Command('stats')
    .description('Show what crawlers are doing and have done, with the crawls of the last 14 days.')
    .option('--from <day>', 'first day of the history, YYYY-MM-DD')
    .option('--to <day>', 'last day of the history, YYYY-MM-DD')
    .option(
      '--watch [seconds]',
      'show it again and again, every 2 seconds',
      wholeNumber('--watch', 1, 3_600),
    )
    .addHelpText(
      'after',
      examples(
        'queued-crawler stats --watch',
        'queued-crawler --json stats --from 2026-01-01 --to 2026-01-31 | jq .completed',
      ),
    )
    .action(async (options: StatsOptions, command: Command) => {
      using session = await openSession(context, command, {
        isPatient: options.watch !== undefined,
      });
      const { client, output, signal } = session;
      for (;;) {
        const stats = await client.stats.getStats(
          { historyFrom: options.from ?? '', historyTo: options.to ?? '' },
          { signal },
        );
        if (options.watch !== undefined && output.isTerminal && !output.isJson) {
          await output.line(CLEAR);
        }
        await show(session, stats);
        if (options.watch === undefined) return;
        await sleep((options.watch === true ? 2 : options.watch) * 1_000, undefined, { signal });
      }
    });
}

async function show({ output }: Session, stats: GetStatsResponse): Promise<void> {
  if (output.isJson) return output.json(toPlain(GetStatsResponseSchema, stats));
  const { concurrency, queue, completed, failed } = stats;
  await output.line(
    [
      `${queue?.waiting ?? 0} waiting and ${queue?.retrying ?? 0} retrying of ${queue?.limit ?? 0}`,
      `${concurrency?.running ?? 0} running of ${concurrency?.limit ?? 0}`,
      `${completed} completed, ${failed} failed`,
    ].join(' · '),
  );
  const heading = [
    'NAME',
    'STATUS',
    'WAITING',
    'RETRYING',
    'RUNNING',
    'COMPLETED',
    'FAILED',
    'TO DELIVER',
    'DAYS',
  ];
  await output.table(heading, stats.crawlers.map(row));
}

function row(crawler: CrawlerStats): string[] {
  const { name, status, queue, concurrency, activity, history } = crawler;
  return [
    name,
    status === CrawlerStatus.PAUSED ? 'paused' : 'running',
    String(queue?.waiting ?? 0),
    String(queue?.retrying ?? 0),
    `${concurrency?.running ?? 0}/${concurrency?.limit ?? 0}`,
    String(activity?.completed ?? 0),
    String(activity?.failed ?? 0),
    String(activity?.deliveriesPending ?? 0),
    sparkline(history.slice(-DAYS).map(({ success, failed }) => Number(success + failed))),
  ];
}
