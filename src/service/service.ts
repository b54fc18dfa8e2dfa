import {
  createDispatcher,
  type Dispatcher,
  type DispatchTiming,
} from '../dispatcher/dispatcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { CrawlerDefaults } from '../domain/crawler-settings.ts';
import type { Logger } from '../domain/logger.ts';
import type { AccountLimits } from '../domain/quotas.ts';
import type { CrawlEngine } from '../engine/engine.ts';
import type { PolitenessGate } from '../engine/politeness/politeness.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { DeliveryOutcome, JobOutcome, PushLimits, Store } from '../store/store.ts';
import { BASE_BYTES, type CrawlThreads } from '../threads/crawl-threads.ts';
import type { Webhook } from '../webhook/webhook.ts';
import { type AccountManagement, createAccountManagement } from './accounts/accounts.ts';
import { type Authenticator, createAuthenticator } from './accounts/authenticate.ts';
import { createFailedTokens } from './accounts/failed-tokens.ts';
import { createQuotas, type Quotas } from './accounts/quotas.ts';
import { createCrawlerAccess } from './crawlers/crawler-access.ts';
import { type CrawlerManagement, createCrawlerManagement } from './crawlers/crawlers.ts';
import { createMonitor } from './crawlers/monitor.ts';
import { createCrawlJobs } from './crawls/crawl-job.ts';
import { createCrawling } from './crawls/crawling.ts';
import { createInlineCrawls, type InlineCrawls } from './crawls/inline-crawl.ts';
import type { SharedResources } from './crawls/shared-resources.ts';
import { createAttemptDelivery } from './deliveries/attempt-delivery.ts';
import { createNotices } from './deliveries/notices.ts';
import { type AsyncJobs, createAsyncJobs } from './queue/async-jobs.ts';
import { createTimeouts } from './queue/expire-jobs.ts';
import { createJobManagement, type JobManagement } from './queue/jobs.ts';
import { createPushing, type Pushing } from './queue/push.ts';
import { createStatistics, type Statistics } from './reads/stats.ts';
import { createStorage, type Storage } from './reads/storage.ts';
import { defineTasks, repeatTasks, type TaskTiming } from './tasks.ts';

/** What the use cases work with. */
export interface ServiceDeps {
  readonly store: Store;
  readonly scheduler: Scheduler;
  /** Plain HTTP crawls, and the results of all. */
  readonly threads: CrawlThreads;
  /** Crawls of the JavaScript token. */
  readonly browser: CrawlEngine;
  readonly politeness: PolitenessGate;
  readonly shared: SharedResources;
  readonly webhook: Webhook;
  readonly mailer: Mailer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: ServiceSettings;
  /** Told of what ended, for metrics. */
  readonly observe: {
    crawl(outcome: JobOutcome): void;
    delivery(outcome: DeliveryOutcome): void;
    push(accepted: number, refused: number): void;
    /** A token that is not known was sent. */
    wrongToken(): void;
  };
}

/** The part of the configuration that the use cases follow. */
export interface ServiceSettings {
  /** Names this process in leases. */
  readonly owner: string;
  readonly adminToken: string;
  /** Whether other processes work on the same database. */
  readonly sharesDatabase: boolean;
  readonly limits: PushLimits;
  /** Limits of accounts that have none of their own. */
  readonly accountLimits: AccountLimits;
  readonly pushRatePerSecond: number;
  readonly inlineConcurrency: number;
  /** Why a callback URL can never be called; undefined when it may be. */
  readonly uncallable: (callbackUrl: string) => string | undefined;
  /** The operator's proxies: URLs by ISO country, and `tor`. */
  readonly proxies: Readonly<Record<string, string>>;
  readonly defaults: CrawlerDefaults;
  readonly retentionDays: number;
  readonly webhookRetrySchedule: readonly number[];
  readonly webhookAckTimeoutMs: number;
  readonly probeIntervalMs: number;
  /** Base of the URLs in replies; known once the port is. */
  readonly publicUrl: () => string;
  readonly dispatch: DispatchTiming;
  readonly tasks: TaskTiming;
}

/** All use cases, wired. */
export interface Service {
  readonly authenticator: Authenticator;
  readonly accounts: AccountManagement;
  readonly quotas: Quotas;
  readonly crawlers: CrawlerManagement;
  readonly jobs: JobManagement;
  readonly asyncJobs: AsyncJobs;
  readonly pushing: Pushing;
  readonly inlineCrawls: InlineCrawls;
  readonly storage: Storage;
  readonly statistics: Statistics;
  readonly dispatcher: Dispatcher;
  /** Gives the scheduler its tasks; for a process that works, not only answers. */
  defineTasks(): void;
  /** Lets the repeating tasks run; after the scheduler has started. */
  repeatTasks(): Promise<void>;
}

/** Wires the use cases; nothing runs yet. */
export function createService(deps: ServiceDeps): Service {
  const { store, scheduler, threads, shared, webhook, clock, logger, settings, observe } = deps;
  const { limits, defaults, retentionDays } = settings;
  const { adminToken } = settings;
  const authenticator = createAuthenticator({
    accounts: store.accounts,
    adminToken,
    clock,
    sharesDatabase: settings.sharesDatabase,
    failedTokens: createFailedTokens({ clock, logger, onFailure: observe.wrongToken }),
  });
  const access = createCrawlerAccess({ crawlers: store.crawlers, clock });
  const quotas = createQuotas({ store, clock, defaults: settings.accountLimits });
  const proxyNames = new Set(Object.keys(settings.proxies));
  const crawling = createCrawling({
    threads,
    browser: deps.browser,
    politeness: deps.politeness,
    proxies: settings.proxies,
    screenshots: store.screenshots,
    clock,
    publicUrl: settings.publicUrl,
  });
  const crawlJobs = createCrawlJobs({ crawling, clock, retentionDays });
  const schedule = settings.webhookRetrySchedule;
  const postDelivery = createAttemptDelivery({ webhook, clock, schedule });
  const dispatcher = createDispatcher({
    store,
    scheduler,
    clock,
    logger,
    owner: settings.owner,
    timing: settings.dispatch,
    async crawlJob(job, crawler, signal) {
      const end = await crawlJobs.crawl(job, crawler, signal);
      observe.crawl(end.outcome);
      return end;
    },
    mayCrawl: quotas.mayCrawl,
    crawlBytes: BASE_BYTES,
    shared,
    async postDelivery(crawler, delivery, signal) {
      const end = await postDelivery(crawler, delivery, signal);
      observe.delivery(end.outcome);
      if (end.outcome.kind === 'delivered') {
        quotas.proveCallback(crawler.accountId, crawler.callbackUrl ?? '');
      }
      return end;
    },
    ackTimeoutMs: settings.webhookAckTimeoutMs,
  });
  const notices = createNotices({ store, mailer: deps.mailer, clock, logger });
  const pushing = createPushing({
    store,
    access,
    scheduler,
    dispatcher,
    clock,
    limits,
    quotas,
    proxyNames,
    ratePerSecond: settings.pushRatePerSecond,
    onPushed: observe.push,
    onAccountLimitReached: ({ account }) => {
      logger.warn({ account: account.name }, 'the account is over its queue limit, pushes paused');
      notices.accountQueueFull(account, limits.accountQueue).catch((error: unknown) => {
        logger.error({ err: error, account: account.name }, 'a notice was not written');
      });
    },
  });
  return {
    authenticator,
    dispatcher,
    pushing,
    quotas,
    accounts: createAccountManagement({ store, authenticator, dispatcher, quotas, clock }),
    crawlers: createCrawlerManagement({
      store,
      access,
      dispatcher,
      scheduler,
      clock,
      defaults,
      quotas,
      uncallable: settings.uncallable,
    }),
    jobs: createJobManagement({ store, access, dispatcher, scheduler, quotas, clock }),
    asyncJobs: createAsyncJobs({ store, dispatcher, clock }),
    inlineCrawls: createInlineCrawls({
      store,
      crawling,
      shared,
      pushing,
      quotas,
      clock,
      proxyNames,
      defaults,
      retentionDays,
      concurrency: settings.inlineConcurrency,
    }),
    storage: createStorage({ results: store.results }),
    statistics: createStatistics({ store }),
    repeatTasks: () => repeatTasks(scheduler, settings.tasks),
    defineTasks() {
      defineTasks({
        scheduler,
        store,
        dispatcher,
        clock,
        timing: settings.tasks,
        expireOverdue: createTimeouts({ store, crawlJobs, scheduler, clock }),
        sendNotices: notices.sendDue,
        probeDue: createMonitor({
          ...deps,
          access,
          dispatcher,
          mayProbe: quotas.takeProbe,
          notices,
          intervalMs: settings.probeIntervalMs,
          lookMs: settings.tasks.probeMs,
        }),
      });
    },
  };
}
