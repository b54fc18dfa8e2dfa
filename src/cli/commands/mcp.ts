import { Command } from 'commander';
import { type CommandContext, openSession } from '../command-context.ts';
import { examples } from '../examples.ts';
import { manifest } from '../manifest.ts';

/** `mcp`: serves an agent over standard input and output. */
export function createMcpCommand(context: CommandContext): Command {
  return new Command('mcp')
    .description(
      'Serve an agent by the Model Context Protocol over standard input and output: read pages, search results, statistics, failures. docs/mcp.md lists the tools.',
    )
    .option('--allow-push', 'let the agent push URLs and crawl, too')
    .addHelpText(
      'after',
      examples(
        'queued-crawler mcp',
        'queued-crawler --url https://crawler.example --token "$TOKEN" mcp --allow-push',
        'claude mcp add crawler -- queued-crawler mcp',
      ),
    )
    .action(async (options: { readonly allowPush?: boolean }, command: Command) => {
      using session = await openSession(context, command);
      // It takes a tenth of a second to load, which the other commands save.
      const { serveOverStdio } = await import('../../mcp/serve-stdio.ts');
      await serveOverStdio(context.stdin, context.stdout, {
        client: session.client,
        version: manifest.version,
        allowPush: options.allowPush === true,
        signal: context.signal,
      });
    });
}
