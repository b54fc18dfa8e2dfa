import { Command } from 'commander';
import type { CommandContext, CommandFactory } from './command-context.ts';
import { createAccountCommand } from './commands/account.ts';
import { createActCommand } from './commands/act.ts';
import { createAuditCommand } from './commands/audit.ts';
import { createBackupCommand } from './commands/backup.ts';
import { createBatchesCommand } from './commands/batches.ts';
import { createCompleteCommand } from './commands/complete.ts';
import { createCompletionCommand } from './commands/completion.ts';
import { createCrawlCommand } from './commands/crawl.ts';
import { createCrawlerCommand } from './commands/crawler.ts';
import { createDeliveriesCommand } from './commands/deliveries.ts';
import { createDoctorCommand } from './commands/doctor.ts';
import { createExportCommand } from './commands/export.ts';
import { createFindCommand } from './commands/find.ts';
import { createHealthCommand } from './commands/health.ts';
import { createHostsCommand } from './commands/hosts.ts';
import { createInitCommand } from './commands/init.ts';
import { createJobsCommand } from './commands/jobs.ts';
import { createListenCommand } from './commands/listen.ts';
import { createMcpCommand } from './commands/mcp.ts';
import { createMigrateCommand } from './commands/migrate.ts';
import { createProxiesCommand } from './commands/proxies.ts';
import { createPushCommand } from './commands/push.ts';
import { createRestoreCommand } from './commands/restore.ts';
import { createResultsCommand } from './commands/results.ts';
import { createServeCommand } from './commands/serve.ts';
import { createStatsCommand } from './commands/stats.ts';
import { manifest } from './manifest.ts';

/** The commands, in the order of the help; a new one is a file of `commands` and a line here. */
const commands: readonly CommandFactory[] = [
  createServeCommand,
  createInitCommand,
  createCrawlerCommand,
  createPushCommand,
  createCrawlCommand,
  createResultsCommand,
  createExportCommand,
  createFindCommand,
  createJobsCommand,
  createActCommand,
  createBatchesCommand,
  createHostsCommand,
  createProxiesCommand,
  createDeliveriesCommand,
  createStatsCommand,
  createAccountCommand,
  createAuditCommand,
  createDoctorCommand,
  createHealthCommand,
  createListenCommand,
  createMcpCommand,
  createBackupCommand,
  createRestoreCommand,
  createMigrateCommand,
  createCompletionCommand,
];

/**
 * Makes the program. Parsing throws commander's error for what the command line cannot be, and for
 * help that was asked for; commands throw what `tellFailure` reads.
 */
export function createProgram(context: CommandContext): Command {
  const program = new Command('queued-crawler')
    .description('Crawls queued URLs: runs the service, and is a client of it.')
    .version(manifest.version, '--version', 'print the version')
    .option('--url <url>', 'address of the service (QUEUED_CRAWLER_URL)')
    .option(
      '--token <token>',
      "an account's token, instead of the profile's (QUEUED_CRAWLER_TOKEN)",
    )
    .option('--admin-token <token>', "the operator's token (QUEUED_CRAWLER_ADMIN_TOKEN)")
    .option('--javascript', "use the profile's JavaScript token (QUEUED_CRAWLER_JAVASCRIPT_TOKEN)")
    .option('--profile <name>', 'settings that "init" has kept (QUEUED_CRAWLER_PROFILE)')
    .option('--ca <file>', 'PEM file of the certificate authority (QUEUED_CRAWLER_CA)')
    .option('--http1', 'use HTTP/1.1, for proxies that know nothing else (QUEUED_CRAWLER_HTTP1)')
    .option('--json', 'print JSON, one object a line')
    .addHelpText('after', '\nCOMMAND --help has examples. Exit codes: docs/cli.md.');
  for (const create of commands) program.addCommand(create(context));
  program.addCommand(createCompleteCommand(context), { hidden: true });
  for (const command of allCommands(program)) {
    command
      .exitOverride()
      .helpCommand(false)
      .configureOutput({
        writeOut: (text) => void context.stdout.write(text),
        writeErr: (text) => void context.stderr.write(text),
        getOutHelpWidth: () => context.stdout.columns ?? 100,
        getErrHelpWidth: () => context.stderr.columns ?? 100,
        getOutHasColors: () => false,
        getErrHasColors: () => false,
      })
      .showHelpAfterError('(--help says more)');
  }
  return program;
}

/** A command with all below it. */
export function allCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allCommands)];
}
