import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import { Command } from 'commander';
import { describeFailure } from '../../client/client.ts';
import { defined } from '../../domain/defined.ts';
import { CliError, usageError } from '../cli-error.ts';
import { clientOf, type GlobalOptions, resolveSettings } from '../cli-settings.ts';
import type { CommandContext } from '../command-context.ts';
import { examples } from '../examples.ts';
import { EXIT_CODE } from '../exit-code.ts';
import { type Profile, profilesPath, readProfiles, writeProfile } from '../profiles.ts';

interface InitOptions extends GlobalOptions {
  readonly javascriptToken?: string;
  readonly local?: boolean;
  readonly check: boolean;
  readonly force?: boolean;
}

/** `init`: keeps the address and the tokens of a service in a profile. */
export function createInitCommand(context: CommandContext): Command {
  return new Command('init')
    .description(
      'Keep the address and the tokens of a service in a profile, readable by you alone.',
    )
    .option('--javascript-token <token>', "the account's JavaScript token")
    .option('--local', 'make tokens for a service on this machine, which "serve" gives it')
    .option('--no-check', 'do not ask the service whether the token is right')
    .option('--force', 'replace a profile that is there')
    .addHelpText(
      'after',
      examples(
        'queued-crawler init --local && queued-crawler serve',
        'queued-crawler init --url https://crawler.example.com --token "$TOKEN"',
        'queued-crawler init --profile staging --url http://10.0.0.5:8080 --token "$TOKEN"',
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const options = command.optsWithGlobals<InitOptions>();
      const name = options.profile ?? 'default';
      const path = profilesPath(context.env);
      if ((await readProfiles(path))[name] !== undefined && options.force !== true) {
        throw usageError(`there is a profile "${name}" in ${path}; --force replaces it`);
      }
      const { profile: _none, ...rest } = options;
      const { url } = await resolveSettings(rest, context.env);
      const profile = options.local === true ? newLocal(url) : await ask(context, options, url);
      if (options.check && options.local !== true) await check(profile, options);
      await writeProfile(path, name, profile);
      const next = profile.local === true ? ' Start the service: queued-crawler serve' : '';
      context.stderr.write(`Profile "${name}" is in ${path}.${next}\n`);
      if (options.json === true) {
        context.stdout.write(`${JSON.stringify({ profile: name, path, url })}\n`);
      }
    });
}

function newLocal(url: string): Profile {
  const token = () => randomBytes(24).toString('base64url');
  return {
    url,
    token: token(),
    javascript_token: token(),
    admin_token: token(),
    local: true,
  };
}

/** The profile of the options; a person is asked for a token that is missing. */
async function ask(context: CommandContext, options: InitOptions, url: string): Promise<Profile> {
  const { env, stdin, stderr } = context;
  let token = options.token ?? env.QUEUED_CRAWLER_TOKEN;
  if (token === undefined && stdin.isTTY === true) {
    const prompt = createInterface({ input: stdin, output: stderr });
    try {
      token = (await prompt.question('Token (shown as you type): ')).trim();
    } finally {
      prompt.close();
    }
  }
  if (token === undefined || token === '') {
    throw usageError(
      'there is no token: give one that the service has printed by --token, or make a service of your own by --local',
    );
  }
  const javascript = options.javascriptToken ?? env.QUEUED_CRAWLER_JAVASCRIPT_TOKEN;
  const admin = options.adminToken ?? env.QUEUED_CRAWLER_ADMIN_TOKEN;
  return {
    url,
    token,
    ...defined({ javascript_token: javascript, admin_token: admin, ca: options.ca }),
  };
}

async function check({ url = '', token = '', ca }: Profile, options: InitOptions): Promise<void> {
  const { http1 } = options;
  const settings = await resolveSettings({ url, ...defined({ ca, http1 }) }, {});
  await using client = clientOf(settings, token, { attempts: 2 });
  try {
    await client.storage.countResults({});
  } catch (error) {
    const { code, message } = describeFailure(error);
    if (code === 'unauthenticated') throw new CliError(`${url}: ${message}`, EXIT_CODE.denied);
    throw new CliError(
      `${url} does not answer (${message}); --no-check keeps the profile all the same`,
      EXIT_CODE.unavailable,
    );
  }
}
