import { Argument, Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { completionScripts } from '../completion-scripts.ts';
import { examples } from '../examples.ts';

const shells = Object.keys(completionScripts) as (keyof typeof completionScripts)[];

/** `completion`: prints what a shell needs to complete commands and options. */
export function createCompletionCommand(context: CommandContext): Command {
  return new Command('completion')
    .description('Print the script with which a shell completes commands, options and crawlers.')
    .addArgument(new Argument('<shell>', 'whose script').choices(shells))
    .addHelpText(
      'after',
      examples(
        'source <(queued-crawler completion bash)',
        'queued-crawler completion zsh > "${fpath[1]}/_queued-crawler"',
        'queued-crawler completion fish > ~/.config/fish/completions/queued-crawler.fish',
      ),
    )
    .action((shell: keyof typeof completionScripts) => {
      context.stdout.write(completionScripts[shell]);
    });
}
