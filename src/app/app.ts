import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type Backend, openBackend } from '../backend/open-backend.ts';
import { type Backups, createBackups } from '../backup/backups.ts';
import type { Config } from '../config/config.ts';
import { exposureWarning } from '../config/exposure.ts';
import { lowOpenFilesLimit } from '../config/open-files.ts';
import { type AppTiming, appTiming } from '../config/timing.ts';
import { unusedSettings } from '../config/unused-settings.ts';
import { VERSION } from '../config/version.ts';
import type { Clock, ServiceClock } from '../domain/clock.ts';
import { HOUR_MS } from '../domain/durations.ts';
import type { AdjustableLogger, Logger } from '../domain/logger.ts';
import type { StoreTraits } from '../domain/store-traits.ts';
import { noTracing, type Tracing } from '../domain/tracing.ts';
import type { Edge } from '../edge/edge.ts';
import { createMetrics } from '../observability/metrics.ts';
import { createAgendaScheduler } from '../scheduler/agenda/agenda-scheduler.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { TokenPair } from '../service/accounts/accounts.ts';
import { ensureDefaultAccount } from '../service/accounts/default-account.ts';
import { createWaysOut } from '../service/crawls/ways-out.ts';
import type { Service } from '../service/service.ts';
import type { Store } from '../store/store.ts';
import { withMetrics } from '../store/with-metrics.ts';
import { withTracing } from '../store/with-tracing.ts';
import type { AppContext } from './app-context.ts';
import { createAppPools, measuredPools } from './app-pools.ts';
import { createCertificateExpiry } from './certificate-expiry.ts';
import { openSessions } from './console-endpoint.ts';
import { openEngines } from './open-engines.ts';
import { createPublicUrl, listenUrl } from './public-url.ts';
import { prepareBackupFolder, readTlsFiles, type TlsFiles, unusable } from './setting-files.ts';
import { startTlsRenewal } from './tls-renewal.ts';
import { wireEdge } from './wire-edge.ts';
import { wireOperator } from './wire-operator.ts';
import { wireService } from './wire-service.ts';

/** What an app is made of in addition to its configuration. */
export interface AppDeps {
  readonly config: Config;
  readonly logger: AdjustableLogger;
  /** Default: that of the database. */
  readonly clock?: ServiceClock;
  /** Changes some of the service's own times, for tests. */
  readonly timing?: Partial<AppTiming>;
  /** Called when the app cannot continue, because its database is lost for good. */
  readonly onFatal?: (error: Error) => void;
  /** Ends a start that waits for processes of another version. */
  readonly signal?: AbortSignal;
}

/** A running service. */
export interface App {
  readonly port: number;
  /** `http://host:port`, or https. */
  readonly url: string;
  /** The tokens of account `default`, when this start has made it. */
  readonly newTokens: TokenPair | undefined;
  /** The name of its database. */
  readonly database: StoreTraits['name'];
  /** Loads what the first crawl would have to wait for. */
  warmUp(): void;
  /** Stops: finishes what it can within the configured time and gives the rest back. */
  close(): Promise<void>;
}

/** Opens everything and listens. If a step fails, the steps before it are undone. */
export async function startApp(deps: AppDeps): Promise<App> {
  const { config, logger } = deps;
  const closeMs = config.shutdownSeconds * 1_000;
  // Closes in the reverse order: first the port, last the database.
  await using stack = new AsyncDisposableStack();

  const tracing = await openTracing(config, logger);
  stack.defer(() => tracing.close());
  const backend = await openBackend(config, logger, deps.onFatal ?? (() => undefined), deps.signal);
  stack.defer(() => backend.close());
  const context = createContext({ clock: backend.clock, ...deps }, tracing, backend.store.traits);
  const { clock, metrics, pools } = context;
  const measured = withMetrics(backend.store, metrics.observeStoreCall);
  const store = tracing === noTracing ? measured : withTracing(measured, tracing);
  const engines = openEngines(context, stack);
  const agenda = createAgendaScheduler({
    backend: backend.scheduler,
    processName: hostname(),
    clock: backend.clock,
    logger,
  });
  let saveHosts = (): Promise<void> => Promise.resolve();
  let saveAudit = saveHosts;
  stack.defer(() => saveHosts());
  stack.defer(() => saveAudit());
  // Crawls and calls have the same time to end: in turn, each would wait for the other's slowest.
  const draining: (() => Promise<void>)[] = [() => agenda.close(closeMs)];
  stack.defer(async () => void (await Promise.all(draining.map((drain) => drain()))));
  const scheduler = onTimeOf(backend.clock, agenda, clock);
  const waysOut = createWaysOut({ pools: config.proxies, clock, logger });
  const secret = await store.processes.secret(randomBytes(32).toString('base64url'));
  const service = wireService(context, { store, scheduler, engines, waysOut, secret });
  saveHosts = service.dispatcher.close;
  saveAudit = service.auditTrail.close;
  const tlsFiles = await readTls(config);
  const expiry = tlsFiles && createCertificateExpiry({ files: tlsFiles, clock, logger });
  const backups = await openBackups(config, backend, logger);
  if (backups !== undefined) draining.push(() => backups.close(closeMs));
  metrics.watch({
    process: {
      version: VERSION,
      role: config.role,
      database: store.traits.name,
      dataDir: config.dataDir,
      minFreeBytes: config.minFreeBytes,
      ping: () => store.ping(),
    },
    queues: {
      read: () => store.stats.queueDepths(config.metricsCrawlers),
      attention: service.countAttention,
      clock,
      byCrawler: config.metricsCrawlers > 0,
    },
    transactions: store.transactions,
    browser: engines.browserActivity,
    backups: backups && { everyMs: backupEveryMs(config), list: backups.list },
    certificate: expiry,
    dispatcher: service.dispatcher.activity,
    hosts: service.dispatcher.troubledHosts,
    threads: engines.threads.activity,
    ladders: service.rungNumbers,
    proxies: config.proxies.length === 0 ? undefined : waysOut,
    pools: measuredPools(pools),
  });
  const operator = wireOperator(context, { service, store, scheduler, waysOut }, stack);
  const sessions = openSessions(context, service, secret);
  const edge = wireEdge(context, { service, store, operator, backups, sessions, tlsFiles });
  if (config.role !== 'api') {
    service.defineTasks();
    await scheduler.start();
    await service.repeatTasks();
    draining.push(service.dispatcher.help());
  }
  draining.push(() => edge.close(closeMs));
  await service.authenticator.learn();
  const { port, url } = await listen(edge, context);
  backups?.start();
  if (tlsFiles !== undefined && expiry !== undefined) {
    const everyMs = context.timing.tlsCheckMs;
    const use = edge.useCertificate;
    stack.defer(startTlsRenewal({ config, used: tlsFiles, everyMs, use, expiry, logger }));
  }
  // After everything that can fail, because the tokens are shown once.
  const newTokens = await ensureAccount(config, store, service, logger);

  const open = stack.move();
  return {
    port,
    url,
    newTokens,
    database: store.traits.name,
    warmUp: engines.threads.warmUp,
    close: () => open.disposeAsync(),
  };
}

async function readTls(config: Config): Promise<TlsFiles | undefined> {
  if (config.tlsCertFile === '') return undefined;
  return readTlsFiles(config.tlsCertFile, config.tlsKeyFile);
}

async function openBackups(
  config: Config,
  { embedded }: Backend,
  logger: Logger,
): Promise<Backups | undefined> {
  if (embedded === undefined) return undefined;
  const folder = config.backupDir === '' ? join(config.dataDir, 'backups') : config.backupDir;
  if (config.backupEveryHours > 0) await prepareBackupFolder(folder);
  return createBackups({
    copy: embedded.copy,
    database: embedded.path,
    folder,
    keep: config.backupKeep,
    everyMs: backupEveryMs(config),
    minFreeBytes: config.minFreeBytes,
    logger,
  });
}

function backupEveryMs({ backupEveryHours }: Pick<Config, 'backupEveryHours'>): number {
  return backupEveryHours * HOUR_MS;
}

/** Opens the traces; without an endpoint nothing is loaded for them. */
async function openTracing(config: Config, logger: Logger): Promise<Tracing> {
  if (config.otlpEndpoint === '') return noTracing;
  const tracing = await import('../observability/open-tracing.ts');
  const settings = {
    endpoint: config.otlpEndpoint,
    headers: config.otlpHeaders,
    serviceName: config.otelServiceName,
    ratio: config.traceRatio,
    version: VERSION,
    instance: `${hostname()}:${process.pid}`,
  };
  return tracing.openTracing(settings, logger);
}

function createContext(
  { config, logger, clock, timing }: AppDeps & { readonly clock: ServiceClock },
  tracing: Tracing,
  traits: StoreTraits,
): AppContext {
  return {
    config,
    logger,
    tracing,
    clock,
    timing: { ...appTiming(config, traits), ...timing },
    traits,
    metrics: createMetrics({ exemplars: config.otlpEndpoint !== '' }),
    pools: createAppPools(config),
    publicUrl: createPublicUrl(config),
    processId: `${hostname()}:${process.pid}:${crypto.randomUUID()}`,
  };
}

async function listen(
  edge: Edge,
  { config, logger, publicUrl }: AppContext,
): Promise<Pick<App, 'port' | 'url'>> {
  const port = await edge.listen(config.host, config.port).catch((error: unknown) => {
    const isName = (error as NodeJS.ErrnoException).syscall === 'getaddrinfo';
    throw isName ? unusable('HOST', 'has no address', error) : error;
  });
  const exposed = exposureWarning(config);
  if (exposed !== undefined) logger.warn({ host: config.host }, exposed);
  const low = lowOpenFilesLimit();
  if (low !== undefined) logger.warn({}, `${low.finding} ${low.advice}`);
  for (const warning of unusedSettings(config)) logger.warn({}, warning);
  const url = listenUrl(config, port);
  publicUrl.listening(url);
  return { port, url };
}

/** Makes account `default` where there is no account. Returns its tokens if it did. */
async function ensureAccount(
  config: Config,
  store: Store,
  service: Service,
  logger: Logger,
): Promise<TokenPair | undefined> {
  const tokens = await ensureDefaultAccount(
    { accounts: store.accounts, management: service.accounts, logger },
    {
      ...(config.normalToken === '' ? {} : { normal: config.normalToken }),
      ...(config.javascriptToken === '' ? {} : { javascript: config.javascriptToken }),
    },
    config.accountEmail,
  );
  service.authenticator.reset();
  return tokens;
}

/** The scheduler runs on the time of the database, from which the service's may differ in tests. */
function onTimeOf(own: Clock, scheduler: Scheduler, clock: Clock): Scheduler {
  if (clock === own) return scheduler;
  return {
    ...scheduler,
    wake(name, key, at) {
      const inMs = at.getTime() - clock.now().getTime();
      return scheduler.wake(name, key, new Date(own.now().getTime() + inMs));
    },
  };
}
