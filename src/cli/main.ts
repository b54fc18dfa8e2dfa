import { CommanderError } from 'commander';
import { tellFailure } from './cli-error.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT_CODE } from './exit-code.ts';
import { createProgram } from './program.ts';

/** Runs the command line of this process, and sets its exit code. */
async function main(): Promise<void> {
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // The second time the process ends at once, as by default.
    process.once(signal, () => stopping.abort(new Error('interrupted')));
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Nobody reads any more, as when the output goes to `head`.
    process.exit(error.code === 'EPIPE' ? EXIT_CODE.ok : EXIT_CODE.failed);
  });
  const context: CommandContext = {
    env: process.env,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    signal: stopping.signal,
    setExitCode(code) {
      process.exitCode = code;
    },
  };
  const program = createProgram(context);
  try {
    await program.parseAsync(process.argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      // commander has printed the help or the fault.
      process.exitCode = error.exitCode === 0 ? EXIT_CODE.ok : EXIT_CODE.usage;
      return;
    }
    if (stopping.signal.aborted) {
      process.exitCode = EXIT_CODE.interrupted;
      return;
    }
    const { url = 'its address', json } = program.opts<{ url?: string; json?: boolean }>();
    const { exitCode, ...failure } = tellFailure(error, url);
    process.stderr.write(
      json === true
        ? `${JSON.stringify({ error: failure })}\n`
        : `queued-crawler: ${failure.message}${failure.reason === undefined ? '' : ` (${failure.reason})`}\n`,
    );
    process.exitCode = exitCode;
  }
}

await main();
