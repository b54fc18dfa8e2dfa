import { type App, startApp } from './app/app.ts';
import { ConfigError, describeConfig, readConfig } from './config/config.ts';
import { misspeltSettings } from './config/misspelt-settings.ts';
import { VERSION } from './config/version.ts';
import { freeWhenIdle } from './idle-memory.ts';
import { createLogger, isPretty } from './observability/create-logger.ts';
import { printWelcome } from './welcome.ts';
import { stopsWithParent, whenOrphaned } from './when-orphaned.ts';

const HELP = `Usage: npm start [-- --help | --version]

Runs the queued crawler service. It is configured by environment variables, shown with their defaults:

${describeConfig()}
`;

/**
 * npm and shells forward a signal that the process group has received as well. A second signal
 * within this time is such a copy, not a second request.
 */
const SAME_SIGNAL_MS = 500;

/** How much longer than `SHUTDOWN_SECONDS` a stop may take: a database may answer nothing at all. */
const STOP_GRACE_MS = 2_000;

/** What to do when the service cannot listen, by the code of the error. */
const LISTEN_ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: '. Another program listens there: stop it, or choose another PORT.',
  EACCES: '. This user may not listen there: choose another PORT, from 1024.',
  EADDRNOTAVAIL: '. This machine does not have that address: choose another HOST.',
};

async function main(): Promise<void> {
  if (process.argv.includes('--help') || process.argv.includes('-h')) {
    process.stdout.write(HELP);
    return;
  }
  if (process.argv.includes('--version')) {
    process.stdout.write(`${VERSION}\n`);
    return;
  }
  const [unknown] = process.argv.slice(2);
  if (unknown !== undefined) throw new ConfigError(`unknown argument ${unknown}; see --help`);
  const config = readConfig(process.env);
  const logger = await createLogger(config, process.stdout.isTTY);
  for (const warning of misspeltSettings(process.env)) logger.warn({}, warning);
  let starting: Promise<App> | undefined;
  let stoppingSince: number | undefined;
  const stopped = new AbortController();

  function stop(reason: string, exitCode: number): void {
    if (stoppingSince !== undefined) return;
    stoppingSince = performance.now();
    logger.info({ reason }, 'stopping');
    stopped.abort();
    setTimeout(
      () => {
        logger.warn(
          {},
          'stopping took too long; what is left is taken over when its lease has lapsed',
        );
        process.exit(exitCode);
      },
      config.shutdownSeconds * 1_000 + STOP_GRACE_MS,
    );
    const closed = (starting ?? Promise.reject(new Error('nothing was started'))).then((app) =>
      app.close(),
    );
    closed.then(
      () => {
        logger.info({}, 'stopped');
        process.exit(exitCode);
      },
      (error: unknown) => {
        logger.error({ err: error }, 'stopping failed');
        process.exit(1);
      },
    );
  }

  function welcome(app: App): void {
    // Standard output has nothing but the log where programs read it.
    const isForPeople = isPretty(config.logFormat, process.stdout.isTTY);
    printWelcome(app, config, isForPeople ? process.stdout : process.stderr);
  }

  function onSignal(signal: NodeJS.Signals): void {
    const waited = performance.now() - (stoppingSince ?? performance.now());
    if (waited > SAME_SIGNAL_MS) {
      logger.warn({ reason: signal }, 'stopping at once');
      process.exit(1);
    }
    stop(signal, 0);
  }

  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, onSignal);
  starting = startApp({
    config,
    logger,
    signal: stopped.signal,
    onFatal(error) {
      logger.error({ err: error }, 'this process cannot use the database any more');
      stop('fatal', 1);
    },
  });
  if (process.env.npm_lifecycle_event !== undefined || stopsWithParent(process.env)) {
    whenOrphaned(() => stop('the parent process has ended', 0));
  }
  const app = await starting;
  if (stoppingSince !== undefined) {
    // The tokens of a new account are shown this once.
    if (app.newTokens !== undefined) welcome(app);
    return;
  }
  freeWhenIdle();
  logger.info({ version: VERSION, url: app.url, role: config.role }, 'started');
  welcome(app);
  if (config.role !== 'api') app.warmUp();
}

main().catch((error: unknown) => {
  const text = error instanceof ConfigError ? error.message : describe(error);
  process.stderr.write(`queued-crawler cannot start: ${text}\n`);
  process.exit(1);
});

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const { code, syscall } = error as NodeJS.ErrnoException;
  const advice = syscall === 'listen' ? (LISTEN_ADVICE[code ?? ''] ?? '') : '';
  return `${error.message}${cause}${advice}`;
}
