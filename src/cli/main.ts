import { EXIT_CODE } from './exit-code.ts';
import { runProgram } from './run-program.ts';

// Runs the command line of this process, and sets its exit code.

/** How long an interrupted process has for its own end. */
const BLOCKED_MS = 200;

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // The second time the process ends at once, as by default.
  process.once(signal, () => stopping.abort(new Error('interrupted')));
}
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Nobody reads any more, as when the output goes to `head`.
  process.exit(error.code === 'EPIPE' ? EXIT_CODE.ok : EXIT_CODE.failed);
});
await runProgram(process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  signal: stopping.signal,
  setExitCode(code) {
    process.exitCode = code;
  },
});
if (stopping.signal.aborted) {
  // A named pipe that is being opened cannot be left: it keeps the process, and an exit waits for it.
  setTimeout(() => {
    if (!process.getActiveResourcesInfo().includes('FSReqCallback')) return;
    process.removeAllListeners('SIGINT');
    process.kill(process.pid, 'SIGINT');
  }, BLOCKED_MS).unref();
}
