import { CommanderError } from 'commander';
import { tellFailure } from './cli-error.ts';
import { type GlobalOptions, resolveSettings } from './cli-settings.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT_CODE } from './exit-code.ts';
import { createProgram } from './program.ts';

/** Runs the command line `args` to its end; prints a failure and sets the exit code. */
export async function runProgram(args: readonly string[], context: CommandContext): Promise<void> {
  const program = createProgram(context);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has printed the help or the fault.
      context.setExitCode(error.exitCode === 0 ? EXIT_CODE.ok : EXIT_CODE.usage);
      return;
    }
    if (context.signal.aborted) {
      context.setExitCode(EXIT_CODE.interrupted);
      return;
    }
    const options = program.opts<GlobalOptions>();
    const { json } = options;
    const url = await resolveSettings(options, context.env).then(
      (settings) => settings.url,
      () => 'its address',
    );
    const { exitCode, ...failure } = tellFailure(error, url);
    context.stderr.write(
      json === true
        ? `${JSON.stringify({ error: failure })}\n`
        : `queued-crawler: ${failure.message}${failure.reason === undefined ? '' : ` (${failure.reason})`}\n`,
    );
    context.setExitCode(exitCode);
  }
}
