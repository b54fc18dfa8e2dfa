import type { Config } from '../config/config.ts';
import { createRobotsGate } from '../engine/politeness/robots-gate.ts';
import { createMailer } from '../mail/mailer.ts';
import { uncallableReason, unusableProxyReason } from '../net/callable-url.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import { createDiskRoom, unlimitedDisk } from '../service/accounts/disk-room.ts';
import type { WaysOut } from '../service/crawls/ways-out.ts';
import { createService, type Service, type ServiceSettings } from '../service/service.ts';
import type { Store } from '../store/store.ts';
import { createWebhook } from '../webhook/create-webhook.ts';
import type { AppContext } from './app-context.ts';
import type { Engines } from './open-engines.ts';

/** What the use cases are wired to. */
export interface ServiceParts {
  readonly store: Store;
  readonly scheduler: Scheduler;
  readonly engines: Engines;
  readonly waysOut: WaysOut;
  /** Of the database: seals the pools of accounts where the operator has set no key of its own. */
  readonly secret: string;
}

/** Wires the use cases; nothing runs yet. */
export function wireService(context: AppContext, parts: ServiceParts): Service {
  const { config, logger, clock, metrics, pools, traits } = context;
  const { engines, secret } = parts;
  const { client } = engines;
  return createService({
    ...parts,
    ...engines,
    clock,
    logger,
    tracing: context.tracing,
    robots: createRobotsGate({ client, clock }),
    poolSecrets: toPoolSecrets(config, secret),
    shared: pools.dispatch,
    webhook: createWebhook({
      client,
      clock,
      ackTimeoutMs: config.webhookAckTimeoutMs,
      uncompressedHosts: config.webhookPlainHosts,
      botName: config.webhookBotName,
      logger,
    }),
    mailer: createMailer({ smtpUrl: config.smtpUrl, from: config.mailFrom, logger }),
    disk:
      traits.localDisk === undefined
        ? unlimitedDisk
        : createDiskRoom(traits.localDisk, config.minFreeBytes, logger),
    observe: {
      start: metrics.observeStart,
      crawl: metrics.observeCrawl,
      delivery: metrics.observeDelivery,
      push: metrics.observePush,
      wrongToken: metrics.observeWrongToken,
      probesPostponed: metrics.observePostponedProbes,
    },
    settings: serviceSettings(context, engines),
  });
}

/** The first seals, all open: what was sealed before the operator had a key is opened, too. */
function toPoolSecrets({ proxySealKeys }: Config, secret: string): readonly [string, ...string[]] {
  const [first, ...former] = proxySealKeys;
  return first === undefined ? [secret] : [first, ...former, secret];
}

function serviceSettings(
  { config, timing, publicUrl, processId }: AppContext,
  { guard }: Pick<Engines, 'guard'>,
): ServiceSettings {
  return {
    processId,
    adminToken: config.adminToken,
    limits: pushLimits(config),
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
    maxBodyBytes: config.maxBodyBytes,
    inlineConcurrency: config.inlineConcurrency,
    browserPages: config.browserPages,
    whyNotCallable: (callbackUrl) => uncallableReason(callbackUrl, guard),
    whyNotUsable: (proxyUrl) => unusableProxyReason(proxyUrl, guard),
    allowsSnippets: config.jsSnippets,
    defaults: {
      concurrency: config.defaultConcurrency,
      maxRetries: config.maxRetries,
      retryWindowHours: config.retryWindowHours,
    },
    retentionDays: config.resultRetentionDays,
    webhookRetrySchedule: config.webhookRetrySchedule,
    webhookAckTimeoutMs: config.webhookAckTimeoutMs,
    probeIntervalMs: config.probeIntervalSeconds * 1_000,
    publicUrl: publicUrl.current,
    dispatch: timing.dispatch,
    tasks: timing.tasks,
  };
}

/** The limits of the queues. */
export function pushLimits(config: Pick<Config, 'crawlerQueueLimit' | 'accountQueueLimit'>) {
  return { crawlerQueue: config.crawlerQueueLimit, accountQueue: config.accountQueueLimit };
}
