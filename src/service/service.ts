import type { Dispatcher } from '../dispatcher/dispatcher.ts';
import type { DispatchTiming } from '../dispatcher/dispatcher-deps.ts';
import type { Account } from '../domain/account.ts';
import { attentionOf } from '../domain/attention.ts';
import type { ServiceClock } from '../domain/clock.ts';
import type { CrawlerDefaults } from '../domain/crawler-settings.ts';
import type { Logger } from '../domain/logger.ts';
import type { AccountLimits } from '../domain/quotas.ts';
import { createSeal } from '../domain/seal.ts';
import type { TimedWork, Tracing } from '../domain/tracing.ts';
import type { CrawlEngine } from '../engine/engine.ts';
import type { RobotsGate } from '../engine/politeness/robots-gate.ts';
import type { Mailer } from '../mail/mailer.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { DeliveryOutcome, JobOutcome, PushLimits, Store } from '../store/store.ts';
import type { CrawlThreads } from '../threads/crawl-threads.ts';
import type { Webhook } from '../webhook/webhook.ts';
import { type AccountPools, createAccountPools } from './accounts/account-pools.ts';
import { type AccountManagement, createAccountManagement } from './accounts/accounts.ts';
import { type AuditTrail, createAuditTrail } from './accounts/audit-trail.ts';
import { type Authenticator, createAuthenticator } from './accounts/authenticate.ts';
import type { DiskRoom } from './accounts/disk-room.ts';
import { createFailedTokens } from './accounts/failed-tokens.ts';
import { createQuotas, type Quotas } from './accounts/quotas.ts';
import { createTokenWatch, type TokenWatch } from './accounts/token-watch.ts';
import { type ActOnMatches, createActOnMatches } from './batches/act-on-matches.ts';
import { type BatchManagement, createBatchManagement } from './batches/batches.ts';
import { createPushAgain, type PushAgain } from './batches/push-again.ts';
import { createCrawlerAccess } from './crawlers/crawler-access.ts';
import { type CrawlerManagement, createCrawlerManagement } from './crawlers/crawlers.ts';
import { createHostManagement, type HostManagement } from './crawlers/host-management.ts';
import { createMonitor } from './crawlers/monitor.ts';
import { createPoolChanges } from './crawlers/pool-changes.ts';
import { createCookieSessions } from './crawls/cookie-sessions.ts';
import { createCrawlJobs } from './crawls/crawl-job.ts';
import { createCrawlTimes } from './crawls/crawl-times.ts';
import { createCrawling } from './crawls/crawling.ts';
import { createInlineCrawls, type InlineCrawls } from './crawls/inline-crawl.ts';
import { createLadders, type Ladders } from './crawls/ladder.ts';
import { createProxyBudgets } from './crawls/proxy-budgets.ts';
import { createReadSitemap, type ReadSitemap } from './crawls/read-sitemap.ts';
import type { SharedResources } from './crawls/shared-resources.ts';
import { withStoredPages } from './crawls/stored-pages.ts';
import { tracedCrawling } from './crawls/traced-crawling.ts';
import { createUsablePools, POOLS_FRESH_MS } from './crawls/usable-pools.ts';
import type { WaysOut } from './crawls/ways-out.ts';
import { createTestDelivery, type TestDelivery } from './deliveries/test-delivery.ts';
import { type AttentionWatch, createAttentionWatch } from './notices/attention-watch.ts';
import { createNotices, type Notices } from './notices/outbox.ts';
import { type AsyncJobs, createAsyncJobs } from './queue/async-jobs.ts';
import { createTimeouts } from './queue/expire-jobs.ts';
import { createJobManagement, type JobManagement } from './queue/jobs.ts';
import { createPushing, type Pushing } from './queue/push.ts';
import { type AccountActivities, createAccountActivities } from './reads/account-activity.ts';
import { createCrawlerList, type ListCrawlers } from './reads/crawler-list.ts';
import { createFailureGroups, type ListFailures } from './reads/failures.ts';
import { createHostReads, type HostReads } from './reads/host-list.ts';
import { createListings, type Listings } from './reads/listings.ts';
import { createMarkdownPages, type MarkdownPages } from './reads/markdown-pages.ts';
import { createOverviews, type ReadAttention } from './reads/overviews.ts';
import { createResultStreams, type ResultStreams } from './reads/result-streams.ts';
import { createSearch, type Search } from './reads/search.ts';
import { createStatistics, type Statistics } from './reads/statistics.ts';
import { createStorage, type Storage } from './reads/storage.ts';
import { createTimelines, type Timelines } from './reads/timelines.ts';
import { defineTasks, repeatTasks, resumeCrawlers, type TaskTiming } from './tasks.ts';
import { createOverviewPoll } from './watches/overview-poll.ts';
import { createWatches, type Watches } from './watches/watches.ts';
import { wireDispatcher } from './wire-dispatcher.ts';

/** The collaborators of the use cases. */
export interface ServiceDeps {
  readonly store: Store;
  readonly scheduler: Scheduler;
  /** Plain HTTP crawls, and the results of all. */
  readonly threads: CrawlThreads;
  /** Crawls of the JavaScript token. */
  readonly browser: CrawlEngine;
  readonly robots: RobotsGate;
  readonly waysOut: WaysOut;
  /** Seal the pools of accounts: the first does so now, the others did before. */
  readonly poolSecrets: readonly [string, ...string[]];
  readonly shared: SharedResources;
  readonly webhook: Webhook;
  readonly mailer: Mailer;
  readonly clock: ServiceClock;
  readonly logger: Logger;
  readonly tracing: Tracing;
  /** The disk of the database. */
  readonly disk: DiskRoom;
  readonly settings: ServiceSettings;
  /** Called for each thing that ended, for metrics. */
  readonly observe: {
    /** A crawl began, `lagMs` after its job was due. */
    start(lagMs: number): void;
    crawl(outcome: JobOutcome, crawl: TimedWork): void;
    delivery(outcome: DeliveryOutcome, delivery: TimedWork): void;
    push(accepted: number, refused: number): void;
    /** A call had an unknown token. */
    wrongToken(): void;
    probesPostponed(crawlers: number): void;
  };
}

/** The part of the configuration that the use cases need. */
export interface ServiceSettings {
  /** Names this process in leases. */
  readonly processId: string;
  readonly adminToken: string;
  readonly limits: PushLimits;
  /** Limits of accounts that have none of their own. */
  readonly accountLimits: AccountLimits;
  readonly pushRatePerSecond: number;
  readonly inlineConcurrency: number;
  /** The longest page. */
  readonly maxBodyBytes: number;
  /** Browser pages that are open at once. */
  readonly browserPages: number;
  /** Why a callback URL can never be called; undefined if it can. */
  readonly whyNotCallable: (callbackUrl: string) => string | undefined;
  /** The same for the proxies of accounts. */
  readonly whyNotUsable: (proxyUrl: string) => string | undefined;
  /** Whether clients may run scripts of their own in pages. */
  readonly allowsSnippets: boolean;
  readonly defaults: CrawlerDefaults;
  readonly retentionDays: number;
  readonly webhookRetrySchedule: readonly number[];
  readonly webhookAckTimeoutMs: number;
  readonly probeIntervalMs: number;
  /** Base of the URLs in replies; empty until the port is known. */
  readonly publicUrl: () => string;
  readonly dispatch: DispatchTiming;
  readonly tasks: TaskTiming;
}

/** All use cases, wired. */
export interface Service {
  readonly authenticator: Authenticator;
  readonly tokenWatch: TokenWatch;
  readonly accounts: AccountManagement;
  readonly quotas: Quotas;
  readonly accountPools: AccountPools;
  /** What the proxies of an account have done, as this process knows. */
  readonly listProxies: WaysOut['listOf'];
  readonly crawlers: CrawlerManagement;
  readonly hosts: HostManagement;
  readonly hostReads: HostReads;
  readonly jobs: JobManagement;
  readonly batches: BatchManagement;
  readonly pushAgain: PushAgain;
  readonly actOnMatches: ActOnMatches;
  readonly readSitemap: ReadSitemap;
  readonly asyncJobs: AsyncJobs;
  readonly pushing: Pushing;
  readonly inlineCrawls: InlineCrawls;
  readonly storage: Storage;
  readonly markdownPages: MarkdownPages;
  readonly resultStreams: ResultStreams;
  readonly statistics: Statistics;
  readonly timelines: Timelines;
  readonly listings: Listings;
  readonly search: Search;
  readonly listCrawlers: ListCrawlers;
  readonly listFailures: ListFailures;
  readonly activities: AccountActivities;
  readonly testDelivery: TestDelivery;
  readonly watches: Watches;
  readonly dispatcher: Dispatcher;
  readonly auditTrail: AuditTrail;
  readonly countAttention: AttentionWatch['counts'];
  readonly rungNumbers: Ladders['numbers'];
  /** Defines the scheduler's tasks, in a process that crawls. */
  defineTasks(): void;
  /** Starts the repeating tasks and wakes what the last process left; called when the scheduler runs. */
  repeatTasks(): Promise<void>;
}

/** Wires the use cases; nothing runs yet. */
export function createService(deps: ServiceDeps): Service {
  const { store, scheduler, clock, logger, tracing, settings, observe } = deps;
  const { limits, defaults, retentionDays } = settings;
  const authenticator = createAuthenticator({
    accounts: store.accounts,
    adminToken: settings.adminToken,
    clock,
    traits: store.traits,
    failedTokens: createFailedTokens({ clock, logger, onFailure: observe.wrongToken }),
  });
  const access = createCrawlerAccess({ crawlers: store.crawlers, clock });
  const quotas = createQuotas({ ...deps, defaults: settings.accountLimits });
  const { holds } = quotas;
  const attention: ReadAttention = ({ crawler, counters }, held) =>
    attentionOf(crawler, counters, limits, clock, held);
  const overviews = createOverviews({ listings: store.listings, clock, attention, holds });
  const activities = createAccountActivities({
    overviews,
    limits,
    pushesPerSecond: settings.pushRatePerSecond,
  });
  const accountPools = createAccountPools({
    ...deps,
    seal: createSeal(deps.poolSecrets, 'pools of proxies'),
    whyNotUsable: settings.whyNotUsable,
    onChange(accountId) {
      usablePools.forget(accountId);
      poolChanged(accountId);
    },
  });
  const usablePools = createUsablePools({
    ...deps,
    operators: deps.waysOut.pools,
    read: accountPools.read,
  });
  const offers = { usablePools, allowsSnippets: settings.allowsSnippets };
  const plainCrawling = createCrawling({
    ...deps,
    usablePools,
    screenshots: store.screenshots,
    sessions: createCookieSessions({ store: store.cookieSessions, clock, logger }),
    publicUrl: settings.publicUrl,
  });
  const crawling = withStoredPages(tracedCrawling(plainCrawling, tracing), {
    ...deps,
    results: store.results,
    memory: deps.shared.memory,
    maxBodyBytes: settings.maxBodyBytes,
  });
  const budgets = createProxyBudgets({ stats: store.stats, clock, logger });
  const ladders = createLadders({ usablePools, operators: deps.waysOut.pools, clock, logger });
  const crawlJobs = createCrawlJobs({ crawling, ladders, budgets, clock, retentionDays });
  const crawlTimes = createCrawlTimes();
  const dispatcher = wireDispatcher(deps, { access, crawlJobs, quotas, crawlTimes });
  /** What most use cases work with. */
  const common = { ...deps, access, dispatcher, quotas };
  const poolChanged = createPoolChanges({
    ...common,
    crawlers: store.crawlers,
    delayMs: POOLS_FRESH_MS,
  });
  const hostReads = createHostReads({
    ...common,
    hosts: store.hosts,
    processId: settings.processId,
  });
  const notices = createNotices(deps);
  const attentionWatch = createAttentionWatch({
    ...common,
    notices,
    attention,
    queueLimit: limits.crawlerQueue,
  });
  const pushing = createPushing({
    ...common,
    limits,
    offers,
    ratePerSecond: settings.pushRatePerSecond,
    onPushed: observe.push,
    onAccountLimitReached: ({ account }) => reportFullQueue(deps, notices, account),
  });
  const batches = createBatchManagement({ ...common, notices, retentionDays });
  const inlineCrawls = createInlineCrawls({
    ...common,
    crawling,
    pushing,
    offers,
    defaults,
    retentionDays,
    maxBodyBytes: settings.maxBodyBytes,
    concurrency: settings.inlineConcurrency,
  });
  const listings = createListings({ ...common, waits: hostReads.waits, holds });
  const pushAgain = createPushAgain({ ...common, pushing });
  const jobs = createJobManagement(common);
  return {
    authenticator,
    batches,
    pushAgain,
    actOnMatches: createActOnMatches({ ...common, jobs, pushAgain }),
    readSitemap: createReadSitemap(inlineCrawls),
    inlineCrawls,
    tokenWatch: createTokenWatch({ authenticator }),
    dispatcher,
    auditTrail: createAuditTrail(common),
    countAttention: attentionWatch.counts,
    rungNumbers: ladders.numbers,
    pushing,
    quotas,
    accounts: createAccountManagement({ ...common, authenticator }),
    crawlers: createCrawlerManagement({
      ...common,
      defaults,
      attention,
      whyNotCallable: settings.whyNotCallable,
      usablePools,
    }),
    accountPools,
    listProxies: deps.waysOut.listOf,
    hosts: createHostManagement(common),
    hostReads,
    jobs,
    asyncJobs: createAsyncJobs(common),
    storage: createStorage({ results: store.results, clock }),
    markdownPages: createMarkdownPages(deps.threads),
    resultStreams: createResultStreams(common),
    statistics: createStatistics(common),
    timelines: createTimelines(common),
    listings,
    search: createSearch({ store, overviews, listings }),
    listCrawlers: createCrawlerList({ overviews }),
    listFailures: createFailureGroups({ listings: store.listings, access }),
    activities,
    watches: createWatches({
      ...common,
      poll: createOverviewPoll({ overviews }),
      activities,
      crawlTimes,
    }),
    testDelivery: createTestDelivery({ ...common, rates: store.rates }),
    async repeatTasks() {
      if (!store.traits.shared) await resumeCrawlers(common);
      await repeatTasks(scheduler, settings.tasks);
    },
    defineTasks() {
      defineTasks({
        ...common,
        timing: settings.tasks,
        expireOverdue: createTimeouts({ ...common, crawlJobs }),
        sendNotices: async (task) => {
          await attentionWatch.tell();
          return notices.sendDue(task);
        },
        completeBatches: batches.completeDone,
        probeDue: createMonitor({
          ...common,
          probeWaitMs: quotas.probeWaitMs,
          notices,
          intervalMs: settings.probeIntervalMs,
          claimIntervalMs: settings.tasks.probeMs,
          onPostponed: observe.probesPostponed,
        }),
      });
    },
  };
}

/** Logs that the account's pushes pause, and notifies its owner. */
function reportFullQueue(
  { logger, settings }: Pick<ServiceDeps, 'logger' | 'settings'>,
  notices: Pick<Notices, 'accountQueueFull'>,
  account: Account,
): void {
  logger.warn({ account: account.name }, 'the account is over its queue limit, pushes paused');
  notices.accountQueueFull(account, settings.limits.accountQueue).catch((error: unknown) => {
    logger.error({ err: error, account: account.name }, 'a notice was not written');
  });
}
