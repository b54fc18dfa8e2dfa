import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import type {
  CrawlStep,
  CrawlTry,
  FindRidResponse,
} from '../../../../gen/queuedcrawler/v1/activity_service_pb.ts';
import {
  type DeliveryAttempt,
  DeliveryState,
} from '../../../../gen/queuedcrawler/v1/crawler_service_pb.ts';
import { count, duration } from '../../format/numbers.ts';

/** Something that happened to a job. */
export interface JobEvent {
  readonly title: string;
  readonly kind: 'plain' | 'ok' | 'warn' | 'bad';
  /** When it began; undefined for what is to come. */
  readonly at?: Timestamp | undefined;
  readonly tookMs?: number;
  readonly detail?: string;
  readonly steps?: readonly CrawlStep[];
  /** What the callback URL answered. */
  readonly answer?: string | undefined;
}

const WAITS: Readonly<Record<string, string>> = {
  monitor_pause: 'Waits: its callback URL fails, so the crawler is paused',
  user_pause: 'Waits: the crawler is paused',
  host_pause: 'Waits: its host is paused',
  not_before: 'Waits for the time that its push named',
  retry: 'Waits for a retry',
  disk_full: 'Waits: the disk of the service is almost full, so nothing is crawled',
  storage_full: 'Waits: the storage of the account is full, so nothing is crawled',
  host: 'Waits for its host',
  turn: 'Waits for a free slot',
  crawl: 'Is being crawled',
  delivery: 'Waits for the next delivery attempt',
};

/** What happened to a job, oldest first, and what it waits for. */
export function jobEvents(found: FindRidResponse): readonly JobEvent[] {
  const { job, result, delivery, tries, waitsFor } = found;
  const events: JobEvent[] = [{ title: 'Pushed', kind: 'plain', at: found.pushedAt }];
  const left = Math.max((job?.tries ?? tries.length) - tries.length, 0);
  if (left > 0) {
    const title = `${count(left)} earlier ${left === 1 ? 'try' : 'tries'}, not kept`;
    events.push({ title, kind: 'plain' });
  }
  let endedMs = millisOf(found.pushedAt);
  for (const [at, each] of tries.entries()) {
    const waitedMs = millisOf(each.startedAt) - endedMs;
    const detail = waitedMs >= 1_000 ? `after a wait of ${duration(waitedMs)}` : '';
    events.push({ ...tryEvent(each, left + at + 1), detail });
    endedMs = millisOf(each.startedAt) + each.durationMs;
  }
  if (result !== undefined) {
    const { cbStatus, failure, storedAt } = result;
    events.push(ending('Stored', cbStatus, failure, storedAt));
  }
  if (delivery !== undefined) {
    const { cbStatus, failure, createdAt, state } = delivery;
    events.push(ending('Handed over for delivery', cbStatus, failure, createdAt));
    events.push(...delivery.attempts.map(attemptEvent));
    if (state === DeliveryState.FAILED) events.push({ title: 'Delivery given up', kind: 'bad' });
  }
  if (waitsFor !== '') {
    events.push({ title: WAITS[waitsFor] ?? waitsFor, kind: 'warn', at: found.waitsUntil });
  }
  return events;
}

function tryEvent(each: CrawlTry, number: number): JobEvent {
  const { startedAt, durationMs, originalStatus, failure, steps, rung, detail } = each;
  const by = rung === undefined ? '' : ` by ${rung}`;
  const code = detail === undefined ? '' : ` (${detail})`;
  const site = originalStatus === 0 ? 'the site was silent' : `the site answered ${originalStatus}`;
  return {
    title: `Try ${number}${by}: ${failure === undefined ? '' : `${words(failure)}${code}, `}${site}`,
    kind: failure === undefined ? 'ok' : 'bad',
    at: startedAt,
    tookMs: durationMs,
    steps,
  };
}

function ending(
  what: string,
  cbStatus: number,
  failure: string | undefined,
  at: Timestamp | undefined,
): JobEvent {
  const why = failure === undefined ? '' : ` (${words(failure)})`;
  return {
    title: `${what} with cb_status ${cbStatus}${why}`,
    kind: cbStatus === 200 ? 'ok' : 'bad',
    at,
  };
}

function attemptEvent(each: DeliveryAttempt): JobEvent {
  const { attempt, startedAt, status, error, durationMs, answer } = each;
  const reply = status === 0 ? 'no answer' : `answered ${status}`;
  return {
    title: `Delivery attempt ${attempt}: ${reply}`,
    kind: error === '' ? 'ok' : 'bad',
    at: startedAt,
    tookMs: durationMs,
    detail: error,
    answer,
  };
}

const words = (reason: string): string => reason.replaceAll('_', ' ');

function millisOf(at: Timestamp | undefined): number {
  return at === undefined ? 0 : timestampDate(at).getTime();
}
