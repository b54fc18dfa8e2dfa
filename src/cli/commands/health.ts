import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';
import { Command } from 'commander';
import { CliError } from '../cli-error.ts';
import type { GlobalOptions } from '../cli-settings.ts';
import type { CommandContext } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { printable } from '../output.ts';

/** How the certificate of a service is verified. */
interface TlsOptions {
  readonly ca?: string;
  readonly rejectUnauthorized?: boolean;
}

const TIMEOUT_MS = 5_000;
/** An answer of the service has one line. What is longer is cut. */
const MAX_CHARACTERS = 4_096;

/**
 * `health`: for health checks of containers, which have no other client. It asks this machine at
 * the port that the service's settings name, unless an address is given.
 */
export function createHealthCommand(context: CommandContext): Command {
  return new Command('health')
    .description('Tell by the exit code whether the service of this machine answers.')
    .option('--ready', 'whether its database answers, too')
    .addHelpText(
      'after',
      examples('queued-crawler health', 'PORT=9000 queued-crawler health --ready'),
    )
    .action(async ({ ready }: { ready?: boolean }, command: Command) => {
      const { url } = command.optsWithGlobals<GlobalOptions>();
      const base = url ?? context.env.QUEUED_CRAWLER_URL ?? ownAddress(context.env);
      const path = ready === true ? 'readyz' : 'healthz';
      // The certificate is that of a public name, which is not asked for here; nothing secret is sent.
      const { status, text } = await askHealth(path, base, { rejectUnauthorized: false });
      context.stdout.write(`${text}\n`);
      if (status !== 200) context.setExitCode(EXIT_CODE.unavailable);
    });
}

function ownAddress(env: CommandContext['env']): string {
  const scheme = (env.TLS_CERT ?? '') === '' ? 'http' : 'https';
  return `${scheme}://127.0.0.1:${env.PORT ?? 8080}`;
}

/**
 * Asks the service at `base`, without a token: `healthz` tells whether it answers, `readyz` whether
 * its database does, too. The text is printable. Throws a CliError if the service does not answer.
 */
export async function askHealth(
  path: 'healthz' | 'readyz',
  base: string,
  tls: TlsOptions,
): Promise<{ status: number; text: string }> {
  const url = new URL(path, base.replace(/\/*$/, '/'));
  const { status, text } = await ask(url, tls);
  if (status === 200 && !/^(ok|ready)\b/.test(text)) {
    throw new CliError(
      `what answers at ${url.origin} is not a service of this program`,
      EXIT_CODE.unavailable,
    );
  }
  return { status, text: printable(text.trim()) };
}

function ask(url: URL, tls: TlsOptions): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const fail = (cause: Error): void =>
    reject(
      new CliError(
        `the service does not answer at ${url.origin}: ${cause.message}`,
        EXIT_CODE.unavailable,
      ),
    );
  const get = url.protocol === 'https:' ? getSecure : getPlain;
  const options = { ...tls, signal: AbortSignal.timeout(TIMEOUT_MS) };
  get(url, options, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > MAX_CHARACTERS) response.destroy();
    });
    response.on('close', () => {
      resolve({ status: response.statusCode ?? 0, text: text.slice(0, MAX_CHARACTERS) });
    });
    response.on('error', fail);
  }).on('error', fail);
  return promise;
}
