import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { defined } from '../../domain/defined.ts';
import { fileFailureText } from '../../domain/file-failure.ts';
import { usageError } from '../cli-error.ts';
import { type GlobalOptions, resolveSettings } from '../cli-settings.ts';
import { type CommandContext, wholeNumber } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { manifest } from '../manifest.ts';
import { profilesPath } from '../profiles.ts';
import { startNode } from '../start-node.ts';

interface ServeOptions {
  readonly host?: string;
  readonly port?: number;
  readonly dataDir?: string;
  readonly envFile?: string;
}

/** `serve`: runs the service in a process of its own, with the options that `npm start` gives Node. */
export function createServeCommand(context: CommandContext): Command {
  return new Command('serve')
    .description('Run the service until it is interrupted. docs/settings.md lists its settings.')
    .option('--host <address>', 'address to listen on (HOST)')
    .option('--port <port>', 'port to listen on (PORT)', wholeNumber('--port', 0, 65_535))
    .option('--data-dir <folder>', 'folder of the embedded database (DATA_DIR)')
    .option('--env-file <file>', 'read further settings from a file of NAME=value lines')
    .addHelpText(
      'after',
      examples(
        'queued-crawler serve',
        'queued-crawler serve --port 9000 --data-dir /var/lib/queued-crawler',
        'NETWORK_ALLOW=127.0.0.1 queued-crawler serve --env-file service.env',
      ),
    )
    .action(async (options: ServeOptions, command: Command) => {
      if (options.envFile !== undefined) {
        for (const line of unreadLines(await readEnvFile(options.envFile))) {
          const what = `line ${line} of ${options.envFile} is ignored: it is not NAME=value`;
          context.stderr.write(`queued-crawler: ${what}\n`);
        }
      }
      const settings = await resolveSettings(command.optsWithGlobals<GlobalOptions>(), context.env);
      const { profile } = settings;
      const own = profile.local === true ? profile : {};
      const env = {
        ...defined({
          NORMAL_TOKEN: own.token,
          JAVASCRIPT_TOKEN: own.javascript_token,
          ADMIN_TOKEN: own.admin_token,
        }),
        NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache'),
        ...context.env,
        ...defined({
          HOST: options.host,
          PORT: options.port?.toString(),
          DATA_DIR: options.dataDir,
        }),
      };
      if (profile.local === true) {
        context.stderr.write(
          `The tokens are those of profile "${settings.profileName}" in ${profilesPath(context.env)}.\n`,
        );
      }
      const file = options.envFile === undefined ? [] : [`--env-file=${options.envFile}`];
      const service = fileURLToPath(new URL('../../main.ts', import.meta.url));
      // Node 22 warns of SQLite, in each thread.
      const flags = ['--disable-warning=ExperimentalWarning', ...nodeOptions(), ...file];
      context.signal.throwIfAborted();
      const child = startNode(context, [...flags, service], { ...allocatorOptions(), ...env });
      using _signals = forwardSignals(child);
      const [code] = (await once(child, 'exit')) as [number | null];
      context.setExitCode(code === 0 ? EXIT_CODE.ok : EXIT_CODE.failed);
    });
}

/** Passes on each signal of this process: the service counts them, and a second one ends it at once. */
function forwardSignals(child: ChildProcess): Disposable {
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, forward);
  return {
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, forward);
    },
  };
}

/** The text of a file of settings. Throws a CliError when Node could not read it. */
async function readEnvFile(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    throw usageError(`--env-file cannot be read: ${fileFailureText(error, path)}`);
  });
}

/** A value in quotes, which can have several lines. */
const QUOTED = /=[ \t]*(["'`])[^]*?\1/g;

/** The numbers of the lines of a file of settings that Node ignores, from 1. */
function unreadLines(text: string): number[] {
  const lines = text.replace(QUOTED, (value) => `=${value.replace(/[^\n]/g, '')}=`).split('\n');
  return lines.flatMap((line, n) => (/^\s*(?:#|$)|=/.test(line) ? [] : [n + 1]));
}

/** The options of `npm start`, which holds them. */
function nodeOptions(): string[] {
  return manifest.scripts.start.split(' ').filter((word) => word.startsWith('--'));
}

/** The options of `npm start` for the C library's allocator, which are variables of the environment. */
function allocatorOptions(): Record<string, string> {
  const found = manifest.scripts.start.matchAll(/\b(MALLOC_\w+)=(\d+)/g);
  return Object.fromEntries([...found].map(([, name, value]) => [name, value]));
}
