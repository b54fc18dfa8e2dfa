import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createAdmission } from './api/admission.ts';
import { withAudit } from './api/audit.ts';
import { toConnectError } from './api/errors.ts';
import { createMethods } from './api/methods.ts';
import { openBackend } from './backend/open-backend.ts';
import type { Config } from './config/config.ts';
import { exposureWarning } from './config/exposure.ts';
import { type AppTiming, appTiming } from './config/timing.ts';
import { type Clock, systemClock } from './domain/clock.ts';
import type { Logger } from './domain/logger.ts';
import { createEdge } from './edge/edge.ts';
import { createBrowserTurns } from './engine/browser/browser-turns.ts';
import { NO_SANDBOX, runsAsRoot } from './engine/browser/sandbox.ts';
import { createLazyEngine } from './engine/lazy-engine.ts';
import { createPoliteness } from './engine/politeness/politeness.ts';
import { createFairPool } from './fairness/fair-pool.ts';
import { createRoomPools } from './http/room.ts';
import { createMailer } from './mail/mailer.ts';
import { createAddressGuard } from './net/address-guard.ts';
import { uncallableReason } from './net/callable-url.ts';
import { createHttpClient } from './net/create-http-client.ts';
import type { NetworkSettings } from './net/network-settings.ts';
import { createResolver } from './net/resolver.ts';
import { createMetrics } from './observability/metrics.ts';
import { createRefusedConnections } from './observability/refused-connections.ts';
import { documentedAdapters } from './rest/compat/documented-adapters.ts';
import { screenshotAdapters } from './rest/compat/screenshots.ts';
import { createGateway } from './rest/gateway.ts';
import { createConnectMount } from './rpc/connect-mount.ts';
import { createAgendaScheduler } from './scheduler/agenda/agenda-scheduler.ts';
import type { Scheduler } from './scheduler/scheduler.ts';
import type { TokenPair } from './service/accounts/accounts.ts';
import { ensureDefaultAccount } from './service/accounts/default-account.ts';
import { createSharedResources } from './service/crawls/shared-resources.ts';
import { createService } from './service/service.ts';
import { withMetrics } from './store/with-metrics.ts';
import { createCrawlThreads } from './threads/crawl-threads.ts';
import { createDocumentThreads } from './threads/document-threads.ts';
import { createWebhook } from './webhook/create-webhook.ts';

/** What an app is made of beside its configuration. */
export interface AppDeps {
  readonly config: Config;
  readonly logger: Logger;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Changes some of the service's own times, for tests. */
  readonly timing?: Partial<AppTiming>;
  /** Told when the app cannot go on, because its database is lost for good. */
  readonly onFatal?: (error: Error) => void;
}

/** A running service. */
export interface App {
  readonly port: number;
  /** `http://host:port`, or https. */
  readonly url: string;
  /** The tokens of account `default`, when this start has made it. */
  readonly newTokens: TokenPair | undefined;
  /** Stops: finishes what it can within the configured time and gives the rest back. */
  close(): Promise<void>;
}

/** Calls at work at once. More would only queue at the database, where the calls of all accounts are in one row. */
const CALL_SLOTS = { capacity: 16, reserve: 8, maxWaiting: 1_000 };

/** Opens everything and listens. What was opened before a failure is closed again. */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, logger, clock = systemClock } = deps;
  const timing = { ...appTiming(config), ...deps.timing };
  await using stack = new AsyncDisposableStack();

  // Bytes in flight, whoever they are of; the reserves are for accounts that use little while others fill the rest. Clients decide how
  // long calls hold theirs, so these have a part of their own, and what is crawled does not wait for them.
  const quarter = Math.floor(config.memoryBudgetBytes / 4);
  const memory = createFairPool({ name: 'memory', capacity: 3 * quarter, reserve: quarter / 2 });
  const callMemory = createFairPool({
    name: 'memory of calls',
    capacity: quarter,
    reserve: Math.floor(quarter / 4),
    maxWaiting: 1_000,
  });
  const pools = createRoomPools(callMemory, quarter);
  const tenantsShare = createSharedResources(memory);
  const slots = createFairPool({ name: 'calls', ...CALL_SLOTS });
  const backend = await openBackend(config, logger, deps.onFatal ?? (() => undefined));
  stack.defer(() => backend.close());
  const agenda = createAgendaScheduler({
    backend: backend.scheduler,
    processName: hostname(),
    logger,
  });
  const scheduler = onMachineTime(agenda, clock);
  const network: NetworkSettings = {
    allow: config.networkAllow,
    deny: config.networkDeny,
    dnsServers: config.dnsServers,
    torProxy: config.proxies['tor'],
    proxyTarget: config.proxyTarget,
  };
  const lookup = createResolver({ servers: config.dnsServers });
  const onRefused = createRefusedConnections({
    logger,
    count: (refusal) => metrics.observeRefused(refusal),
  });
  const client = createHttpClient({ ...network, lookup, onRefused });
  stack.defer(() => client.close());
  const guard = createAddressGuard(config.networkAllow, { deny: config.networkDeny });
  const { proxies, crawlThreads: threadCount } = config;
  const limits = {
    timeoutMs: config.crawlTimeoutSeconds * 1_000,
    maxBodyBytes: config.maxBodyBytes,
  };
  const documents = createDocumentThreads({
    threads: threadCount,
    timeoutMs: timing.documentMs,
    logger,
  });
  stack.defer(() => documents.close());
  const threads = createCrawlThreads({
    threads: threadCount,
    settings: { network, limits, proxies },
    onRefused,
    memory,
    documents,
    hangMs: timing.hangMs,
    logger,
  });
  stack.defer(() => threads.close());
  const browserTurns = createBrowserTurns(config.browserPages);
  const browser = createLazyEngine(async () => {
    const { createBrowserEngine } = await import('./engine/browser/browser-engine.ts');
    const { createBrowserPool } = await import('./engine/browser/browser-pool.ts');
    const { chromiumPath, chromiumSandbox: sandbox } = config;
    return createBrowserEngine({
      client,
      clock,
      logger,
      proxies,
      limits,
      pool: createBrowserPool({ chromiumPath, sandbox, turns: browserTurns, logger }),
      guard,
      lookup,
      onRefused,
      proxyTarget: config.proxyTarget,
    });
  });
  stack.defer(() => browser.close());
  if (config.role !== 'api' && config.chromiumSandbox === 'auto' && runsAsRoot()) {
    logger.warn({}, NO_SANDBOX);
  }
  stack.defer(() => agenda.close(config.shutdownSeconds * 1_000));

  let publicUrl = config.publicUrl.replace(/\/$/, '');
  const metrics = createMetrics({
    dispatcher: () => service.dispatcher.activity(),
    threads: threads.activity,
    pools: {
      memory,
      call_memory: callMemory,
      strangers: pools.strangers,
      browser: browserTurns,
      calls: slots,
      crawls: tenantsShare.crawlSlots,
      crawlers: tenantsShare.runSlots,
      turns: tenantsShare.turns,
    },
  });
  const store = withMetrics(backend.store, metrics.observeStoreCall);
  const service = createService({
    store,
    scheduler,
    threads,
    browser,
    politeness: createPoliteness({ client, clock }),
    shared: tenantsShare,
    webhook: createWebhook({
      client,
      clock,
      ackTimeoutMs: config.webhookAckTimeoutMs,
      uncompressedHosts: config.webhookPlainHosts,
      logger,
    }),
    mailer: createMailer({ smtpUrl: config.smtpUrl, from: config.mailFrom, logger }),
    clock,
    logger,
    observe: {
      crawl: metrics.observeCrawl,
      delivery: metrics.observeDelivery,
      push: metrics.observePush,
      wrongToken: metrics.observeWrongToken,
    },
    settings: {
      owner: `${hostname()}:${process.pid}:${crypto.randomUUID()}`,
      adminToken: config.adminToken,
      sharesDatabase: config.mongodbUri !== '',
      limits: { crawlerQueue: config.crawlerQueueLimit, accountQueue: config.accountQueueLimit },
      accountLimits: {
        crawlers: config.accountCrawlers,
        concurrency: config.accountConcurrency,
        storageBytes: config.accountStorageBytes,
        queueBytes: config.accountQueueBytes,
        requestsPerSecond: config.accountRequestsPerSecond,
        probesPerMinute: config.accountProbesPerMinute,
        replaysPerHour: config.accountReplaysPerHour,
      },
      pushRatePerSecond: config.pushRatePerSecond,
      inlineConcurrency: config.inlineConcurrency,
      uncallable: (callbackUrl) => uncallableReason(callbackUrl, guard),
      proxies,
      defaults: {
        concurrency: config.defaultConcurrency,
        maxRetries: config.maxRetries,
        retryWindowHours: config.retryWindowHours,
      },
      retentionDays: config.resultRetentionDays,
      webhookRetrySchedule: config.webhookRetrySchedule,
      webhookAckTimeoutMs: config.webhookAckTimeoutMs,
      probeIntervalMs: config.probeIntervalSeconds * 1_000,
      publicUrl: () => publicUrl,
      dispatch: timing.dispatch,
      tasks: timing.tasks,
    },
  });
  const isReady = shared(() =>
    store.ping().then(
      () => true,
      () => false,
    ),
  );
  const admission = withAudit(createAdmission(service.authenticator), logger);
  const { methods, health } = createMethods({
    service,
    limits: { crawlerQueue: config.crawlerQueueLimit, accountQueue: config.accountQueueLimit },
    publicUrl: () => publicUrl,
    isReady,
    admission,
    slots,
    logger,
  });
  // A worker answers health and metrics only.
  const answered = config.role === 'worker' ? health : methods;
  const edge = createEdge({
    rpc: createConnectMount({
      methods: answered,
      admission,
      pools,
      writeMaxBytes: 256 * 1024 * 1024,
      logger,
    }),
    rest: createGateway({
      methods: answered,
      adapters:
        config.role === 'worker'
          ? []
          : [documentedAdapters, screenshotAdapters(store.screenshots, clock)],
      admission,
      pools,
      toError: (error, place) => toConnectError(error, logger, place),
    }),
    isReady,
    async metrics() {
      const { text, contentType } = await metrics.read();
      return { status: 200, headers: { 'content-type': contentType }, body: text };
    },
    ...(config.tlsCertFile === ''
      ? {}
      : { tls: { cert: readFileSync(config.tlsCertFile), key: readFileSync(config.tlsKeyFile) } }),
    logger,
  });
  if (config.role !== 'api') {
    service.defineTasks();
    await scheduler.start();
    await service.repeatTasks();
  }
  stack.defer(() => edge.close(config.shutdownSeconds * 1_000));
  const port = await edge.listen(config.host, config.port);
  const exposed = exposureWarning(config);
  if (exposed !== undefined) logger.warn({ host: config.host }, exposed);
  const url = `${config.tlsCertFile === '' ? 'http' : 'https'}://${hostInUrl(config.host)}:${port}`;
  if (publicUrl === '') publicUrl = url;

  // After everything that can fail: tokens are shown once.
  const newTokens = await ensureDefaultAccount(
    { accounts: store.accounts, management: service.accounts },
    {
      ...(config.normalToken === '' ? {} : { normal: config.normalToken }),
      ...(config.javascriptToken === '' ? {} : { javascript: config.javascriptToken }),
    },
    config.accountEmail,
  );
  service.authenticator.reset();

  const open = stack.move();
  return { port, url, newTokens, close: () => open.disposeAsync() };
}

/** Those who ask while an answer is on its way get the same one. */
function shared<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asked: Promise<Value> | undefined;
  return () =>
    (asked ??= ask().finally(() => {
      asked = undefined;
    }));
}

/** The scheduler runs on the machine's time; a test's clock may be ahead of it. */
function onMachineTime(scheduler: Scheduler, clock: Clock): Scheduler {
  if (clock === systemClock) return scheduler;
  return {
    ...scheduler,
    wake: (name, key, at) =>
      scheduler.wake(name, key, new Date(Date.now() + at.getTime() - clock.now().getTime())),
  };
}

function hostInUrl(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}
