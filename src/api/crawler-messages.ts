import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type CrawlerActivity,
  type CrawlerActivitySchema,
  type CrawlerSchema,
  CrawlerStatus,
  type CreateCrawlerRequest,
  DeliveryMode,
  JobStatus,
  PausedBy,
  type RequestInfoSchema,
  TokenType,
  type UpdateCrawlerRequest,
  AttentionReason as WireAttentionReason,
} from '../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import type { TokenType as DomainTokenType } from '../domain/account.ts';
import { type Attention, type AttentionReason, attentionReasons } from '../domain/attention.ts';
import {
  type CounterName,
  type Crawler,
  type CrawlerCounters,
  counterNames,
  isPaused,
} from '../domain/crawler.ts';
import { crawlerEtag } from '../domain/crawler-etag.ts';
import {
  crawlerSettings,
  type Setting,
  type SettingName,
  settingNames,
} from '../domain/crawler-settings.ts';
import { defined } from '../domain/defined.ts';
import type { DeliveryMode as DomainDeliveryMode } from '../domain/delivery-mode.ts';
import type { QueuedJob } from '../domain/job.ts';
import type { CrawlerInput } from '../service/crawlers/crawler-input.ts';
import type { ActivityRates } from '../service/reads/overviews.ts';

/** What a crawler does, as it was read. */
export interface CrawlerReading {
  readonly counters: CrawlerCounters;
  readonly rates?: ActivityRates | undefined;
  /** Absent if it was not counted. */
  readonly scheduled?: number;
  readonly attention: readonly Attention[];
  /** When it is shown, by the clock that all processes go by. */
  readonly now: Date;
}

/** A crawler on the wire. */
export function toCrawlerMessage(
  crawler: Crawler,
  reading?: CrawlerReading,
): MessageInitShape<typeof CrawlerSchema> {
  return {
    ...toSettingsMessage(crawler),
    name: crawler.name,
    delivery: DELIVERY_MODES[crawler.delivery],
    tokenType: toTokenTypeValue(crawler.tokenType),
    status: toStatus(crawler),
    callbackUrl: crawler.callbackUrl,
    pausedBy: toPausedBy(crawler),
    pausedAt: optionalTimestamp(crawler.pausedAt),
    pauseReason: crawler.pauseReason,
    activity: reading && toActivityMessage(reading.counters, reading.rates, reading.scheduled),
    processes: reading === undefined ? [] : processesOf(crawler, reading),
    attention: (reading?.attention ?? []).map(toAttentionMessage),
    createdAt: timestampFromDate(crawler.createdAt),
    updatedAt: timestampFromDate(crawler.updatedAt),
    etag: crawlerEtag(crawler),
  };
}

function toAttentionMessage({ reason, since, detail }: Attention) {
  return {
    reason: ATTENTION_REASONS[reason],
    since: timestampFromDate(since),
    detail,
    nextStep: attentionReasons[reason],
  };
}

/** The process that dispatches the crawler has all slots that its helpers have not. */
function processesOf({ concurrency }: Crawler, { counters, now }: CrawlerReading) {
  const helpers = (counters.helpers ?? [])
    .filter(({ until, slots }) => until > now && slots > 0)
    .map(({ processId: id, slots }) => ({ id, slots }));
  const { processId: id = '', until } = counters.dispatchedBy ?? {};
  if (until === undefined || until <= now) return helpers;
  const given = helpers.reduce((sum, { slots }) => sum + slots, 0);
  return [{ id, slots: Math.max(0, concurrency - given) }, ...helpers];
}

/** The settings that mean something in the crawler's delivery mode. */
function toSettingsMessage(
  crawler: Crawler,
): Pick<MessageInitShape<typeof CrawlerSchema>, SettingName> {
  const shown = settingNames.filter((name) => {
    const { appliesTo } = crawlerSettings[name] as Setting<unknown>;
    return crawler[name] !== undefined && appliesTo?.(crawler.delivery) !== false;
  });
  return Object.fromEntries(shown.map((name) => [name, crawler[name]]));
}

/** Counters and rates on the wire. */
export function toActivityMessage(
  counters: CrawlerCounters,
  rates?: ActivityRates,
  scheduled?: number,
): MessageInitShape<typeof CrawlerActivitySchema> {
  const { last } = counters;
  const numbers = counterNames.map((name) => [name, BigInt(counters[name])] as const);
  return {
    ...(Object.fromEntries(numbers) as Pick<CrawlerActivity, CounterName>),
    lastPushAt: optionalTimestamp(last.push),
    lastCrawlAt: optionalTimestamp(last.crawl),
    lastDeliveryAt: optionalTimestamp(last.delivery),
    lastProbeAt: optionalTimestamp(last.probe),
    rates,
    scheduled: scheduled === undefined ? undefined : BigInt(scheduled),
  };
}

const DELIVERY_MODES: Readonly<Record<DomainDeliveryMode, DeliveryMode>> = {
  webhook: DeliveryMode.WEBHOOK,
  storage: DeliveryMode.STORAGE,
};

const ATTENTION_REASONS: Readonly<Record<AttentionReason, WireAttentionReason>> = {
  paused_by_monitor: WireAttentionReason.PAUSED_BY_MONITOR,
  disk_full: WireAttentionReason.DISK_FULL,
  storage_full: WireAttentionReason.STORAGE_FULL,
  deliveries_fail: WireAttentionReason.DELIVERIES_FAIL,
  crawls_fail: WireAttentionReason.CRAWLS_FAIL,
  host_away: WireAttentionReason.HOST_AWAY,
  proxies_fail: WireAttentionReason.PROXIES_FAIL,
  proxy_budget_used: WireAttentionReason.PROXY_BUDGET_USED,
  queue_full: WireAttentionReason.QUEUE_FULL,
};

const TOKEN_TYPES: Readonly<Record<DomainTokenType, TokenType>> = {
  normal: TokenType.NORMAL,
  javascript: TokenType.JAVASCRIPT,
};

/** Finds the name of an enum value of the protocol; undefined for UNSPECIFIED and for no value. */
export function nameOnWire<Name extends string>(
  values: Readonly<Record<Name, number>>,
  value: number | undefined,
): Name | undefined {
  return (Object.keys(values) as Name[]).find((name) => values[name] === value);
}

/** Whether crawlers run, from the wire; undefined when the request does not specify it. */
export function toWantedStatus(value: CrawlerStatus): 'running' | 'paused' | undefined {
  return nameOnWire({ running: CrawlerStatus.RUNNING, paused: CrawlerStatus.PAUSED }, value);
}

/** Whether the crawler runs, on the wire. */
export function toStatus(crawler: Crawler): CrawlerStatus {
  return isPaused(crawler) ? CrawlerStatus.PAUSED : CrawlerStatus.RUNNING;
}

/** A token type on the wire. */
export function toTokenTypeValue(tokenType: DomainTokenType): TokenType {
  return TOKEN_TYPES[tokenType];
}

/** A token type from the wire; undefined when the request does not specify one. */
export function toTokenType(value: TokenType | undefined): DomainTokenType | undefined {
  return nameOnWire(TOKEN_TYPES, value);
}

/** A create or update request; fields that are absent stay absent. */
export function toCrawlerInput(
  request: Pick<CreateCrawlerRequest, SettingName> &
    Pick<UpdateCrawlerRequest, SettingName> & {
      readonly callbackUrl?: string | undefined;
      readonly delivery?: DeliveryMode | undefined;
      readonly tokenType?: TokenType | undefined;
    },
): CrawlerInput {
  return {
    settings: request,
    ...defined({
      callbackUrl: request.callbackUrl,
      delivery: nameOnWire(DELIVERY_MODES, request.delivery),
      tokenType: toTokenType(request.tokenType),
    }),
  };
}

/** A queued job on the wire. */
export function toRequestInfo(
  job: Pick<QueuedJob, 'rid' | 'url' | 'retry' | 'createdAt'>,
): MessageInitShape<typeof RequestInfoSchema> {
  const { rid, url, retry, createdAt } = job;
  return { rid, url, retry, createdAt: createdAt.getTime() / 1_000 };
}

/** Whether a job is queued, on the wire; `job` is undefined for one that is not. */
export function toJobStatus(rid: string, job: QueuedJob | undefined) {
  return job === undefined
    ? { status: JobStatus.NOT_QUEUED, requestInfo: { rid } }
    : { status: JobStatus.QUEUED, requestInfo: toRequestInfo(job) };
}

/** A moment on the wire. */
export function optionalTimestamp(moment: Date | undefined) {
  return moment === undefined ? undefined : timestampFromDate(moment);
}

/** How often tries failed by reason, on the wire; the most frequent first. */
export function toFailureCounts(failures: Readonly<Record<string, number>>) {
  return Object.entries(failures)
    .map(([reason, count]) => ({ reason, count: BigInt(count) }))
    .sort((a, b) => Number(b.count - a.count));
}

function toPausedBy(crawler: Crawler): PausedBy | undefined {
  if (crawler.pausedByUser) return PausedBy.USER;
  return crawler.pausedByMonitor ? PausedBy.MONITOR : undefined;
}
