import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type AsyncCrawlStatsSchema,
  type CrawlerStatsSchema,
  type HistoryDay as HistoryDayMessage,
  type HistoryDaySchema,
  TimelineRange as RangeValue,
  StatsService,
  type TimelinePointSchema,
} from '../../gen/queuedcrawler/v1/stats_service_pb.ts';
import { type DayField, dayFields, type HistoryDay } from '../domain/stats.ts';
import {
  TIMELINE_RANGES,
  type TimelinePoint,
  type TimelineRange,
  timelineFields,
} from '../domain/timeline.ts';
import type { Quotas } from '../service/accounts/quotas.ts';
import { type CrawlerStatistics, type Statistics, sum } from '../service/reads/statistics.ts';
import type { Timelines } from '../service/reads/timelines.ts';
import { callerOf } from './caller-of.ts';
import { toActivityMessage, toStatus, toTokenTypeValue } from './crawler-messages.ts';
import { type Method, toMethods } from './method.ts';
import { quotasMessage } from './quota-messages.ts';

/** The methods of the stats service. The two limits are those pushes are held to. */
export function statsHandlers(deps: {
  readonly statistics: Statistics;
  readonly timelines: Timelines;
  readonly quotas: Pick<Quotas, 'report'>;
  readonly limits: { readonly crawlerQueue: number; readonly accountQueue: number };
}): Method[] {
  const { statistics, timelines, quotas, limits } = deps;
  return toMethods(StatsService, {
    async getTimeline(request, call) {
      const range = RANGES[request.range] ?? 'hour';
      const found = await timelines.read(callerOf(call), request.crawlers, range);
      return {
        stepSeconds: TIMELINE_RANGES[range].stepMs / 1_000,
        crawlers: found.map(({ name, points }) => ({ name, points: points.map(pointMessage) })),
      };
    },
    async getStats(request, call) {
      const owner = callerOf(call);
      const { historyFrom, historyTo, historyOf, withoutCrawlerHistory } = request;
      const of = withoutCrawlerHistory ? 'none' : historyOf;
      const [found, report] = await Promise.all([
        statistics.read(owner, historyFrom, historyTo, of),
        quotas.report(owner.account),
      ]);
      const { crawlers, asyncCrawls } = found;
      const all = [...crawlers, ...asyncCrawls];
      return {
        concurrency: {
          limit: BigInt(sum(all, (row) => row.crawler.concurrency)),
          running: BigInt(sum(all, (row) => row.counters.running)),
        },
        queue: {
          waiting: BigInt(sum(all, (row) => row.counters.waiting)),
          retrying: BigInt(sum(all, (row) => row.counters.retrying)),
          limit: BigInt(limits.accountQueue),
        },
        completed: BigInt(found.completed),
        failed: BigInt(found.failed),
        history: found.history.map(dayMessage),
        crawlerHistoryLeftOut: found.isHistoryLeftOut,
        crawlers: crawlers.map((row) => crawlerStats(row, limits.crawlerQueue)),
        asyncCrawls: asyncCrawls.map((row) => asyncCrawlStats(row, limits.crawlerQueue)),
        quotas: quotasMessage(report),
        stored: found.stored.map(({ tokenType, results, bytes }) => ({
          tokenType: toTokenTypeValue(tokenType),
          results: BigInt(results),
          bytes: BigInt(bytes),
        })),
      };
    },
  });
}

const RANGES: Readonly<Record<RangeValue, TimelineRange>> = {
  [RangeValue.UNSPECIFIED]: 'hour',
  [RangeValue.HOUR]: 'hour',
  [RangeValue.DAY]: 'day',
  [RangeValue.WEEK]: 'week',
  [RangeValue.QUARTER]: 'quarter',
};

function pointMessage(point: TimelinePoint): MessageInitShape<typeof TimelinePointSchema> {
  const { at, missing, queued, medianMs, p95Ms } = point;
  const numbers = timelineFields.map((field) => [field, BigInt(point[field])] as const);
  return {
    at: timestampFromDate(at),
    missing,
    ...Object.fromEntries(numbers),
    queued: queued === undefined ? undefined : BigInt(queued),
    medianMs,
    p95Ms,
  };
}

function crawlerStats(
  row: CrawlerStatistics,
  queueLimit: number,
): MessageInitShape<typeof CrawlerStatsSchema> {
  const { crawler, counters, history } = row;
  return {
    name: crawler.name,
    tokenType: toTokenTypeValue(crawler.tokenType),
    status: toStatus(crawler),
    concurrency: { limit: BigInt(crawler.concurrency), running: BigInt(counters.running) },
    queue: {
      waiting: BigInt(counters.waiting),
      retrying: BigInt(counters.retrying),
      limit: BigInt(queueLimit),
    },
    activity: toActivityMessage(counters),
    history: history.map(dayMessage),
  };
}

function asyncCrawlStats(
  row: CrawlerStatistics,
  queueLimit: number,
): MessageInitShape<typeof AsyncCrawlStatsSchema> {
  const { tokenType, concurrency, queue, activity, history } = crawlerStats(row, queueLimit);
  return { tokenType, concurrency, queue, activity, history } as MessageInitShape<
    typeof AsyncCrawlStatsSchema
  >;
}

function dayMessage(day: HistoryDay): MessageInitShape<typeof HistoryDaySchema> {
  const numbers = dayFields.map((field) => [field, BigInt(day[field])] as const);
  const byCbStatus = Object.entries(day.byCbStatus).map(([status, n]) => [status, BigInt(n)]);
  return {
    date: day.date,
    ...(Object.fromEntries(numbers) as Pick<HistoryDayMessage, DayField>),
    byCbStatus: Object.fromEntries(byCbStatus) as HistoryDayMessage['byCbStatus'],
  };
}
