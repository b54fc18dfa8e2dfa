import type { Command } from 'commander';
import { usageError } from './cli-error.ts';
import { type CommandContext, openSession, type Session } from './command-context.ts';
import { examples } from './examples.ts';

/** Adds an operation on one thing to a group of commands. `example` is what follows the group. */
export type AddOperation<Options> = (
  name: string,
  description: string,
  example: string,
  run: (session: Session, named: string, options: Options) => Promise<void>,
) => Command;

/** Makes what adds operations to `group`; their argument is the name of a `thing`. */
export function operationsOn<Options>(
  context: CommandContext,
  group: Command,
  thing: string,
): AddOperation<Options> {
  return (name, description, example, run) =>
    group
      .command(name)
      .description(description)
      .argument(`<${thing}>`, 'its name')
      .addHelpText('after', examples(`queued-crawler ${group.name()} ${example}`))
      .action(async (named: string, options: Options, command: Command) => {
        using session = await openSession(context, command);
        await run(session, named, options);
      });
}

/** Makes what adds operations on a part of a crawler, such as a batch, to `group`. */
export function operationsOnPart<Part extends string>(
  context: CommandContext,
  group: Command,
  part: Part,
  partDescription: string,
) {
  type Target = { readonly name: string } & Readonly<Record<Part, string>>;
  return (
    action: string,
    description: string,
    run: (session: Session, target: Target, yes: boolean) => Promise<void>,
  ): Command =>
    group
      .command(action)
      .description(description)
      .argument('<crawler>', 'its name')
      .argument(`<${part}>`, partDescription)
      .action(async (name: string, of: string, { yes }: { yes?: boolean }, command: Command) => {
        using session = await openSession(context, command);
        await run(session, { name, [part]: of } as Target, yes === true);
      });
}

/** Throws a CliError unless `--yes` confirms `consequence`, which cannot be undone. */
export function assertConfirmed(yes: boolean | undefined, consequence: string): void {
  if (yes !== true) throw usageError(`${consequence}; give --yes to do it`);
}
