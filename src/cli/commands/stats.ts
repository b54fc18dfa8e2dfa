import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { CrawlerStatus } from '../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import {
  type AsyncCrawlStats,
  type CrawlerStats,
  type GetStatsResponse,
  GetStatsResponseSchema,
} from '../../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { toPlain } from '../../client/message-json.ts';
import { DAY_MS } from '../../domain/durations.ts';
import { toDay } from '../../domain/stats.ts';
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
      const { from: historyFrom = '', to: historyTo = '' } = options;
      const isAllTime = historyFrom === '' && historyTo === '';
      for (;;) {
        const stats = await client.stats.getStats(
          isAllTime && !output.isJson ? { historyFrom: firstDay() } : { historyFrom, historyTo },
          { signal },
        );
        if (options.watch !== undefined && output.isTerminal && !output.isJson) {
          await output.line(CLEAR);
        }
        await show(session, stats, isAllTime);
        if (options.watch === undefined) return;
        await sleep((options.watch === true ? 2 : options.watch) * 1_000, undefined, { signal });
      }
    });
}

/** The first of the days of the sparklines. */
function firstDay(): string {
  return toDay(new Date(Date.now() - (DAYS - 1) * DAY_MS));
}

async function show(
  { output }: Session,
  stats: GetStatsResponse,
  isAllTime: boolean,
): Promise<void> {
  if (output.isJson) return output.json(toPlain(GetStatsResponseSchema, stats));
  const { concurrency, queue, crawlers, asyncCrawls } = stats;
  // The sums of the answer are of the days that were asked for.
  const { completed, failed } = isAllTime ? sumsOf([...crawlers, ...asyncCrawls]) : stats;
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
  await output.table(heading, crawlers.map(row));
  if (stats.crawlerHistoryLeftOut)
    output.note('the days of single crawlers are too many: give a shorter range by --from');
}

function sumsOf(crawlers: readonly (CrawlerStats | AsyncCrawlStats)[]) {
  const sum = (number: 'completed' | 'failed'): bigint =>
    crawlers.reduce((total, { activity }) => total + (activity?.[number] ?? 0n), 0n);
  return { completed: sum('completed'), failed: sum('failed') };
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
