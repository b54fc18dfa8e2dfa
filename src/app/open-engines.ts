import { availableParallelism } from 'node:os';
import type { Config } from '../config/config.ts';
import { TOR } from '../domain/proxy-pools.ts';
import type { BrowserPool } from '../engine/browser/browser-pool.ts';
import { NO_SANDBOX, runsAsRoot } from '../engine/browser/sandbox.ts';
import type { CrawlEngine } from '../engine/engine.ts';
import { createLazyEngine } from '../engine/lazy-engine.ts';
import { type AddressGuard, createAddressGuard } from '../net/address-guard.ts';
import { createHttpClient } from '../net/create-http-client.ts';
import type { FailureReports } from '../net/failure-reports.ts';
import type { HttpClient } from '../net/http-client.ts';
import type { NetworkSettings } from '../net/network-settings.ts';
import { createResolver } from '../net/resolver.ts';
import type { MeasuredBrowser } from '../observability/browser-gauges.ts';
import { createNoSocketWarning } from '../observability/no-socket-warning.ts';
import { createRefusedConnections } from '../observability/refused-connections.ts';
import { type CrawlThreads, createCrawlThreads } from '../threads/crawl-threads.ts';
import { createDocumentThreads } from '../threads/document-threads.ts';
import type { AppContext } from './app-context.ts';
import { chromiumPathWarning } from './setting-files.ts';

/** What crawls, and what it shares with the webhook. */
export interface Engines {
  readonly client: HttpClient;
  readonly guard: AddressGuard;
  /** Plain HTTP crawls, and the results of all crawls. */
  readonly threads: CrawlThreads;
  /** Crawls of the JavaScript token. */
  readonly browser: CrawlEngine;
  readonly browserActivity: MeasuredBrowser;
}

/** Opens the engines; `stack` closes them. */
export function openEngines(context: AppContext, stack: AsyncDisposableStack): Engines {
  const { config, logger, metrics } = context;
  const network = networkSettings(config);
  const lookup = createResolver({ servers: config.dnsServers });
  const reports: FailureReports = {
    onRefused: createRefusedConnections({ logger, count: metrics.observeRefused }),
    onNoSocket: createNoSocketWarning(logger),
  };
  const client = createHttpClient({ ...network, ...reports, lookup });
  stack.defer(() => client.close());
  const guard = createAddressGuard(config.networkAllow, { deny: config.networkDeny });
  const shared = { client, guard, network, lookup, reports };
  const threads = openThreads(context, shared, stack);
  const { browser, browserActivity } = lazyBrowserEngine(context, shared);
  stack.defer(() => browser.close());
  if (config.role !== 'api' && config.chromiumSandbox === 'auto' && runsAsRoot()) {
    logger.warn({}, NO_SANDBOX);
  }
  const noChromium = config.role === 'api' ? undefined : chromiumPathWarning(config.chromiumPath);
  if (noChromium !== undefined) logger.warn({}, noChromium);
  return { client, guard, threads, browser, browserActivity };
}

interface SharedByEngines extends Pick<Engines, 'client' | 'guard'> {
  readonly network: NetworkSettings;
  readonly lookup: ReturnType<typeof createResolver>;
  readonly reports: FailureReports;
}

function networkSettings(config: Config): NetworkSettings {
  return {
    allow: config.networkAllow,
    deny: config.networkDeny,
    dnsServers: config.dnsServers,
    torProxy: torProxyOf(config),
    proxyTarget: config.proxyTarget,
  };
}

function torProxyOf({ proxies }: Config): string | undefined {
  return proxies.find(({ name }) => name === TOR)?.proxies[0]?.url;
}

function crawlLimits(config: Config) {
  return { timeoutMs: config.crawlTimeoutSeconds * 1_000, maxBodyBytes: config.maxBodyBytes };
}

function openThreads(
  { config, timing, pools, logger, traits }: AppContext,
  { network, reports }: SharedByEngines,
  stack: AsyncDisposableStack,
): CrawlThreads {
  // While accounts share them, a core is left to the service.
  const sharedThreads = Math.max(1, Math.min(config.crawlThreads, availableParallelism() - 1));
  const documents = createDocumentThreads({
    threads: sharedThreads,
    timeoutMs: timing.documentMs,
    logger,
  });
  stack.defer(() => documents.close());
  const threads = createCrawlThreads({
    threads: config.crawlThreads,
    sharedThreads,
    // Where turns are round trips it gains little for more processor time, see decision 011.
    spreads: traits.costOfATurn === 'sync',
    settings: {
      network,
      limits: crawlLimits(config),
      identity: config.crawlerIdentity,
    },
    ...reports,
    memory: pools.memory,
    documents,
    hangMs: timing.hangMs,
    logger,
  });
  stack.defer(() => threads.close());
  return threads;
}

/** The browser's modules are imported, and Chromium is started, for the first page. */
function lazyBrowserEngine(
  { config, clock, pools, logger }: AppContext,
  { guard, lookup, reports }: SharedByEngines,
): Pick<Engines, 'browser' | 'browserActivity'> {
  let pool: BrowserPool | undefined;
  const browser = createLazyEngine(async () => {
    const { createBrowserEngine } = await import('../engine/browser/browser-engine.ts');
    const { createBrowserPool } = await import('../engine/browser/browser-pool.ts');
    const { chromiumPath, chromiumSandbox: sandbox, chromiumWebgl: webgl } = config;
    const { crawlerIdentity: identity } = config;
    const turns = pools.browserTurns;
    pool = createBrowserPool({ chromiumPath, sandbox, identity, webgl, turns, logger });
    return createBrowserEngine({
      ...reports,
      guard,
      lookup,
      clock,
      logger,
      torProxy: torProxyOf(config),
      limits: crawlLimits(config),
      maxPages: config.browserPages,
      identity,
      pool,
      proxyTarget: config.proxyTarget,
    });
  });
  return { browser, browserActivity: () => pool?.activity() ?? NO_BROWSER };
}

const NO_BROWSER = { pages: 0, memoryBytes: { browser: 0, renderer: 0, other: 0 } };
