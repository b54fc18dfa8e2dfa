import { pino } from 'pino';
import { type App, startApp } from './app.ts';
import { ConfigError, describeConfig, readConfig } from './config.ts';
import { printWelcome } from './welcome.ts';

const HELP = `Usage: npm start [-- --help]

Runs the queued crawler service. It is configured by environment variables, shown with their defaults:

${describeConfig()}
`;

async function main(): Promise<void> {
  if (process.argv.includes('--help') || process.argv.includes('-h')) {
    process.stdout.write(HELP);
    return;
  }
  const [unknown] = process.argv.slice(2);
  if (unknown !== undefined) throw new ConfigError(`unknown argument ${unknown}; see --help`);
  const config = readConfig(process.env);
  const logger = pino({ level: config.logLevel });
  let app: App | undefined;
  let stopping: Promise<void> | undefined;

  function stop(reason: string, exitCode: number): void {
    if (stopping !== undefined) {
      logger.warn({ reason }, 'stopping at once');
      process.exit(1);
    }
    logger.info({ reason }, 'stopping');
    stopping = (app?.close() ?? Promise.resolve()).then(
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

  app = await startApp({
    config,
    logger,
    onFatal(error) {
      logger.error({ err: error }, 'the database is lost');
      stop('fatal', 1);
    },
  });
  if (process.env.npm_lifecycle_event !== undefined) whenOrphaned(() => stop('npm has ended', 0));
  process.on('SIGTERM', () => stop('SIGTERM', 0));
  process.on('SIGINT', () => stop('SIGINT', 0));
  printWelcome(app, config);
}

main().catch((error: unknown) => {
  const text = error instanceof ConfigError ? error.message : describe(error);
  process.stderr.write(`queued-crawler cannot start: ${text}\n`);
  process.exit(1);
});

/** npm starts a shell that passes no signals on: ended itself, it leaves the service behind with another parent. */
function whenOrphaned(then: () => void): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    then();
  }, 500);
  timer.unref();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.message}${cause}`;
}
