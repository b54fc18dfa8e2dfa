import type { CrawlHold } from '../../domain/attention.ts';
import { type ServiceClock, toWall } from '../../domain/clock.ts';
import type { Crawler } from '../../domain/crawler.ts';
import type { HeaderPair } from '../../domain/job.ts';
import { type JobTry, parseTries, toTries } from '../../domain/job-try.ts';
import { type KeptRequest, keptRequestText, parseKeptRequest } from '../../domain/kept-request.ts';
import { ridTime } from '../../domain/rid.ts';
import { CB_STATUS } from '../../domain/status.ts';
import type { FoundRid } from '../../store/store.ts';
import type { Webhook } from '../../webhook/webhook.ts';
import type { HostWait } from './host-list.ts';

/** What a job waits for; see `FindRidResponse.waits_for` in the API. */
export type WaitsFor =
  | 'monitor_pause'
  | 'user_pause'
  | 'host_pause'
  | 'not_before'
  | 'retry'
  | CrawlHold['reason']
  | 'host'
  | 'turn'
  | 'crawl'
  | 'delivery';

/** The push that does the same again. */
export interface SamePush extends Omit<KeptRequest, 'omitted'> {
  readonly url: string;
  readonly metadata: string | undefined;
}

/** What happened to a job, and what it waits for. */
export interface JobLife {
  readonly pushedAt: Date;
  /** Oldest first. */
  readonly tries: readonly JobTry[];
  readonly waitsFor: WaitsFor | undefined;
  readonly waitsUntil: Date | undefined;
  /** Undefined if it is not kept. */
  readonly push: SamePush | undefined;
  /** Of its latest POST. */
  readonly sentHeaders: readonly HeaderPair[];
}

/** What a job's life is derived with. */
interface LifeContext {
  readonly rid: string;
  /** Undefined for an inline crawl. */
  readonly crawler: Crawler | undefined;
  readonly hostWait: HostWait | undefined;
  /** What holds back the crawls of its account. */
  readonly holds: readonly CrawlHold[];
  readonly clock: ServiceClock;
  readonly webhook: Pick<Webhook, 'shownHeaders'>;
}

/** Derives a job's life from what was found of it. */
export function jobLife(found: FoundRid, context: LifeContext): JobLife {
  const { job, delivery, result } = found;
  const { rid, crawler, hostWait, holds, clock } = context;
  const atWall = (moment: Date): Date => toWall(clock, moment);
  const ended = delivery ?? result;
  const { pushedAt, tries } = ended?.details ?? {};
  const at = pushedAt === undefined ? job?.createdAt : new Date(pushedAt);
  const common = {
    pushedAt: at ?? ridTime(rid),
    tries: toTries(job === undefined ? tries : parseTries(job.tries)),
    push: samePush(found),
    sentHeaders: sentHeaders(delivery, context),
  };
  const waits = (waitsFor: WaitsFor | undefined, until?: Date): JobLife => ({
    ...common,
    waitsFor,
    waitsUntil: until && atWall(until),
  });
  if (job !== undefined) {
    const { state, notBefore, dueAt } = job;
    const now = clock.now();
    if (state === 'running') return waits('crawl');
    if (crawler?.pausedByMonitor === true) return waits('monitor_pause');
    if (crawler?.pausedByUser === true) return waits('user_pause');
    if (hostWait?.kind === 'paused') return waits('host_pause');
    if (notBefore !== undefined && notBefore > now) return waits('not_before', notBefore);
    if (state === 'retrying' && dueAt > now) return waits('retry', dueAt);
    const [hold] = holds;
    if (hold !== undefined) return waits(hold.reason);
    if (hostWait === undefined) return waits('turn');
    return { ...waits('host'), waitsUntil: hostWait.until };
  }
  if (delivery?.state !== 'pending') return waits(undefined);
  if (crawler?.pausedByMonitor === true) return waits('monitor_pause');
  return waits('delivery', delivery.nextAttemptAt);
}

function samePush({ job, delivery, result }: FoundRid): SamePush | undefined {
  if (job !== undefined) {
    const { url, metadata } = job;
    return { ...parseKeptRequest(keptRequestText(job)), url, metadata };
  }
  const ended = delivery ?? result;
  if (ended === undefined) return undefined;
  const { pushedUrl: url, details, request, cbStatus } = ended;
  // Before the moment of the push was kept, crawls that ended well kept nothing of their request.
  const isKept = cbStatus !== CB_STATUS.success || details.pushedAt !== undefined;
  const { omitted, ...kept } = parseKeptRequest(request);
  if (!isKept || omitted === true || details.event !== undefined) return undefined;
  return { ...kept, url, metadata: details.metadata };
}

function sentHeaders(
  delivery: FoundRid['delivery'],
  { crawler, webhook }: Pick<LifeContext, 'crawler' | 'webhook'>,
): readonly HeaderPair[] {
  const sentAt = delivery?.attempts.at(-1)?.startedAt;
  if (delivery === undefined || sentAt === undefined || crawler === undefined) return [];
  if (crawler.deliverBatch !== undefined && delivery.event === undefined) return [];
  return webhook.shownHeaders(crawler, delivery, sentAt);
}
