import type { TokenOwner, TokenType } from '../../src/domain/account.ts';
import type { CrawlerDefaults } from '../../src/domain/crawler-settings.ts';
import type { QueuedJob } from '../../src/domain/job.ts';
import type { AccountLimits } from '../../src/domain/quotas.ts';
import { noTracing } from '../../src/domain/tracing.ts';
import type { Scheduler } from '../../src/scheduler/scheduler.ts';
import { createAccountManagement, type TokenPair } from '../../src/service/accounts/accounts.ts';
import { createAuthenticator } from '../../src/service/accounts/authenticate.ts';
import { createFailedTokens } from '../../src/service/accounts/failed-tokens.ts';
import { createQuotas } from '../../src/service/accounts/quotas.ts';
import { createCrawlerAccess } from '../../src/service/crawlers/crawler-access.ts';
import { createCrawlerManagement } from '../../src/service/crawlers/crawlers.ts';
import { createAsyncJobs } from '../../src/service/queue/async-jobs.ts';
import { createJobManagement } from '../../src/service/queue/jobs.ts';
import { createPushing } from '../../src/service/queue/push.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import type { JobOutcome, PushLimits, Store } from '../../src/store/store.ts';
import { claimJobs, finishJobs } from '../contract/store/store-harness.ts';
import { silentLogger } from './loggers.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { createFrozenClock } from './test-clock.ts';

/** What tests choose; every limit is off unless it is given. */
export interface UseCaseOptions {
  readonly accountLimits?: Partial<AccountLimits>;
  readonly pushLimits?: Partial<PushLimits>;
  /** URLs per second and token. */
  readonly ratePerSecond?: number;
  readonly defaults?: CrawlerDefaults;
  /** Whether another process may change tokens. */
  readonly sharesDatabase?: boolean;
  /** Runs a task at once. Default: nothing does. */
  readonly runNow?: Scheduler['runNow'];
}

/** Limits that are all off. */
export const UNLIMITED: AccountLimits = {
  crawlers: 0,
  concurrency: 0,
  storageBytes: 0,
  queueBytes: 0,
  requestsPerSecond: 0,
  probesPerMinute: 0,
  replaysPerHour: 0,
};

/** An embedded store in a folder of its own, which is removed when disposed. */
export async function openEmbeddedStore(): Promise<AsyncDisposable & { readonly store: Store }> {
  const folder = await temporaryFolder();
  const { store } = await openSqliteStore({ dataDir: folder.path, logger: silentLogger });
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** No account may use a pool of proxies. */
export const NO_POOLS = { of: async () => [] };

let accounts = 0;

/**
 * The use cases of one process over a store, with a clock that tests advance. Nothing is
 * dispatched: the calls to the dispatcher and the scheduler are recorded instead.
 */
export function createUseCases(store: Store, options: UseCaseOptions = {}) {
  const clock = createFrozenClock();
  const calls = {
    /** `task key` of each wake. */
    wakes: [] as string[],
    /** Crawlers, or jobs as `crawler rid`, whose crawls were aborted. */
    aborted: [] as string[],
    /** Accounts that went over the limit of queued URLs. */
    overLimit: [] as string[],
    /** Accepted and refused URLs of each push. */
    pushed: [] as (readonly [number, number])[],
  };
  const scheduler = {
    runNow: options.runNow ?? (() => false),
    async wake(name: string, key: string) {
      calls.wakes.push(`${name} ${key}`);
    },
  };
  const dispatcher = {
    isRunning: () => false,
    notify: () => undefined,
    refresh: () => undefined,
    abortCrawler: (crawlerId: string) => void calls.aborted.push(crawlerId),
    abortJob: (crawlerId: string, rid: string) => void calls.aborted.push(`${crawlerId} ${rid}`),
  };
  const authenticator = createAuthenticator({
    accounts: store.accounts,
    adminToken: '',
    clock,
    failedTokens: createFailedTokens({ clock, logger: silentLogger }),
    traits: { shared: options.sharesDatabase ?? false },
  });
  const quotas = createQuotas({
    store,
    clock,
    defaults: { ...UNLIMITED, ...options.accountLimits },
  });
  const access = createCrawlerAccess({ crawlers: store.crawlers, clock });
  const accountManagement = createAccountManagement({
    store,
    authenticator,
    dispatcher,
    quotas,
    clock,
  });
  const deps = { store, access, dispatcher, scheduler, quotas, clock };
  const useCases = {
    store,
    clock,
    calls,
    authenticator,
    quotas,
    accounts: accountManagement,
    crawlers: createCrawlerManagement({
      ...deps,
      attention: () => [],
      defaults: options.defaults ?? {},
      usablePools: NO_POOLS,
      whyNotCallable: (url) => (url.includes('//localhost') ? 'is this machine' : undefined),
    }),
    jobs: createJobManagement({ ...deps, logger: silentLogger }),
    asyncJobs: createAsyncJobs(deps),
    pushing: createPushing({
      ...deps,
      logger: silentLogger,
      tracing: noTracing,
      limits: { crawlerQueue: 1_000, accountQueue: 1_000, ...options.pushLimits },
      offers: { usablePools: NO_POOLS, allowsSnippets: false },
      ratePerSecond: options.ratePerSecond ?? 0,
      onPushed: (accepted, refused) => void calls.pushed.push([accepted, refused]),
      onAccountLimitReached: ({ account }) => void calls.overLimit.push(account.accountId),
    }),

    /** Makes an account, and returns the callers its two tokens stand for. */
    async account(): Promise<Record<TokenType, TokenOwner> & { readonly tokens: TokenPair }> {
      accounts += 1;
      const { tokens } = await accountManagement.create(`account-${accounts}`, '');
      return {
        tokens,
        normal: await authenticator.authenticate(tokens.normal),
        javascript: await authenticator.authenticate(tokens.javascript),
      };
    },

    /**
     * Claims the due jobs of a crawler, as a dispatcher does, and ends those that `end` ends. The
     * others are being crawled until the next call.
     */
    async dispatch(
      crawlerId: string,
      end: (job: QueuedJob) => JobOutcome | undefined = () => undefined,
    ): Promise<readonly QueuedJob[]> {
      const now = clock.now();
      const lease = await store.queue.acquire(crawlerId, 'test', 15_000, now);
      if (lease === undefined) throw new Error('the crawler is leased');
      const { jobs } = await claimJobs(store, lease, 100, now);
      const outcomes = jobs.map(end).filter((each) => each !== undefined);
      await finishJobs(store, outcomes, now, lease);
      return jobs;
    },
  };
  return useCases;
}

/** See {@link createUseCases}. */
export type UseCases = ReturnType<typeof createUseCases>;
