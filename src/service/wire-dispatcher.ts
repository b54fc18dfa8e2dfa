import { createDispatcher, type Dispatcher } from '../dispatcher/dispatcher.ts';
import type { TimedWork } from '../domain/tracing.ts';
import { BASE_BYTES } from '../threads/thread-messages.ts';
import type { Quotas } from './accounts/quotas.ts';
import type { CrawlerAccess } from './crawlers/crawler-access.ts';
import type { CrawlJobs } from './crawls/crawl-job.ts';
import type { CrawlTimes } from './crawls/crawl-times.ts';
import { MAX_CRAWLS } from './crawls/shared-resources.ts';
import { createAttemptDelivery } from './deliveries/attempt-delivery.ts';
import { tracedWebhook } from './deliveries/traced-webhook.ts';
import { startProcessing } from './queue/queue-spans.ts';
import type { ServiceDeps } from './service.ts';

/** Lets the dispatcher crawl and deliver, and reports each end to the metrics. */
export function wireDispatcher(
  deps: ServiceDeps,
  {
    access,
    crawlJobs,
    quotas,
    crawlTimes,
  }: {
    readonly access: CrawlerAccess;
    readonly crawlJobs: CrawlJobs;
    readonly quotas: Quotas;
    readonly crawlTimes: Pick<CrawlTimes, 'note'>;
  },
): Dispatcher {
  const { shared, clock, tracing, settings, observe } = deps;
  const webhook = tracedWebhook(deps.webhook, tracing);
  const schedule = settings.webhookRetrySchedule;
  const attemptDelivery = createAttemptDelivery({ webhook, clock, schedule });
  return createDispatcher({
    ...deps,
    processId: settings.processId,
    timing: settings.dispatch,
    async crawlJob(job, crawler, signal, host) {
      const startedAt = performance.now();
      const span = startProcessing(tracing, job, crawler);
      const { traceparent } = span;
      const timed = stopwatch(traceparent);
      try {
        const end = await crawlJobs.crawl({ ...job, traceparent }, crawler, signal, host);
        observe.crawl(end.outcome, timed());
        if (end.outcome.kind === 'release') return end;
        const tookMs = performance.now() - startedAt;
        crawlTimes.note(crawler.crawlerId, tookMs);
        return { ...end, outcome: { ...end.outcome, tookMs } };
      } finally {
        span.end();
      }
    },
    mayCrawl: async (accountId) => (await quotas.holds(accountId)).length === 0,
    knownCrawler: access.lastKnown,
    roomFor: ({ tokenType }) => (tokenType === 'javascript' ? settings.browserPages : MAX_CRAWLS),
    hasRoomFor({ tokenType, accountId, crawlerId }) {
      const pool = tokenType === 'javascript' ? shared.pageSlots : shared.crawlSlots;
      return pool.available({ accountId, crawlerId }) > 0;
    },
    onStart: observe.start,
    crawlBytes: BASE_BYTES,
    async postDeliveries(crawler, deliveries, signal) {
      const timed = stopwatch(deliveries[0]?.traceparent);
      const end = await attemptDelivery(crawler, deliveries, signal);
      for (const outcome of end.outcomes) observe.delivery(outcome, timed());
      if (end.outcomes.some(({ kind }) => kind === 'delivered')) {
        const { callbackUrl } = crawler;
        if (callbackUrl !== undefined) quotas.proveCallback(crawler.accountId, callbackUrl);
      }
      return end;
    },
    ackTimeoutMs: settings.webhookAckTimeoutMs,
  });
}

function stopwatch(traceparent: string | undefined): () => TimedWork {
  const startedAt = performance.now();
  return () => ({ seconds: (performance.now() - startedAt) / 1_000, traceparent });
}
