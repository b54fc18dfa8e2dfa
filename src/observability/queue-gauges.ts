import { Gauge, type Registry } from 'prom-client';
import { type Clock } from '../domain/clock.ts';
import { withDeadline } from '../domain/deadline.ts';
import type { QueueDepth, QueueDepths } from '../store/queue-depth.ts';

/** How old a reading of the queues may be: several scrapers cost the database no more than one. */
const FRESH_MS = 5_000;
/** How long a reading may take. A scraper waits for ten seconds by default. */
const READ_MS = 5_000;

/** What the gauges of the queues are read from. */
export interface MeasuredQueues {
  readonly read: () => Promise<QueueDepths>;
  /** Crawlers that need attention, by reason. */
  readonly attention: () => Promise<Readonly<Record<string, number>>>;
  readonly clock: Clock;
  /** Whether single crawlers are shown, by account and name. */
  readonly byCrawler: boolean;
}

/**
 * Makes the gauges of the queues. While the database does not answer they have no values. A crawler
 * that is no longer among the longest queues loses its values, so that labels stay bounded.
 */
export function createQueueGauges(
  registry: Registry,
  { read, attention, clock, byCrawler }: MeasuredQueues,
): void {
  const registers = [registry];
  const depths = fresh(read);
  const troubled = fresh(attention);
  new Gauge({
    name: 'queued_crawler_queue_urls',
    help: 'URLs in all queues, by state; the same in every process.',
    labelNames: ['state'],
    registers,
    async collect() {
      this.reset();
      const total = (await depths())?.total;
      if (total === undefined) return;
      for (const [state, count] of states(total)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'queued_crawler_crawlers_needing_attention',
    help: 'Crawlers of all accounts that need attention, by reason; the same in every process.',
    labelNames: ['reason'],
    registers,
    async collect() {
      this.reset();
      for (const [reason, count] of Object.entries((await troubled()) ?? {})) {
        this.set({ reason }, count);
      }
    },
  });
  new Gauge({
    name: 'queued_crawler_queue_oldest_due_seconds',
    help: 'For how long the job has been due that waits for its crawl for longest; without those of paused crawlers.',
    registers,
    async collect() {
      this.reset();
      const total = (await depths())?.total;
      if (total !== undefined) this.set(overdueSeconds(total, clock));
      else this.remove();
    },
  });
  if (!byCrawler) return;
  new Gauge({
    name: 'queued_crawler_crawler_queue_urls',
    help: 'URLs in the longest queues, by crawler and state.',
    labelNames: ['account', 'crawler', 'state'],
    registers,
    async collect() {
      this.reset();
      for (const depth of (await depths())?.longest ?? []) {
        const { account, crawler } = depth;
        for (const [state, count] of states(depth)) this.set({ account, crawler, state }, count);
      }
    },
  });
  new Gauge({
    name: 'queued_crawler_crawler_queue_oldest_due_seconds',
    help: 'The same as queued_crawler_queue_oldest_due_seconds, of the longest queues.',
    labelNames: ['account', 'crawler'],
    registers,
    async collect() {
      this.reset();
      for (const depth of (await depths())?.longest ?? []) {
        const { account, crawler } = depth;
        this.set({ account, crawler }, overdueSeconds(depth, clock));
      }
    },
  });
}

/** Shares a reading for {@link FRESH_MS}; undefined when it failed, which `queued_crawler_database_up` says. */
function fresh<Value>(read: () => Promise<Value>): () => Promise<Value | undefined> {
  let readAt = Number.NEGATIVE_INFINITY;
  let reading: Promise<Value | undefined> = Promise.resolve(undefined);
  return () => {
    if (performance.now() - readAt > FRESH_MS) {
      readAt = performance.now();
      const late = () => new Error('the queues were not read in time');
      reading = withDeadline(read(), READ_MS, late).catch(() => undefined);
    }
    return reading;
  };
}

function states({ waiting, retrying, running }: QueueDepth): [state: string, count: number][] {
  return Object.entries({ waiting, retrying, running });
}

function overdueSeconds({ oldestDueAt }: QueueDepth, clock: Clock): number {
  if (oldestDueAt === undefined) return 0;
  return Math.max((clock.now().getTime() - oldestDueAt.getTime()) / 1_000, 0);
}
