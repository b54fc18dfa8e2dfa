import { readFile } from 'node:fs/promises';
import { type CrawlerClient, createCrawlerClient, type RetryOptions } from '../client/client.ts';
import { defined } from '../domain/defined.ts';
import { fileFailureText } from '../domain/file-failure.ts';
import { usageError } from './cli-error.ts';
import { type Profile, profilesPath, readProfiles } from './profiles.ts';

/** The options that every command takes. */
export interface GlobalOptions {
  readonly url?: string;
  readonly token?: string;
  readonly adminToken?: string;
  readonly javascript?: boolean;
  readonly profile?: string;
  readonly ca?: string;
  readonly http1?: boolean;
  readonly json?: boolean;
}

/** Where the service is and how it is called, from flags, environment and profile. */
export interface CliSettings {
  readonly url: string;
  /** The Normal token, or with `--javascript` the other; undefined when it is not set. */
  readonly token: string | undefined;
  readonly javascriptToken: string | undefined;
  readonly adminToken: string | undefined;
  readonly httpVersion: '1.1' | '2';
  readonly ca: string | undefined;
  /** The profile's name, and whether the file has it. */
  readonly profileName: string;
  readonly hasProfile: boolean;
  readonly profile: Profile;
}

const DEFAULT_URL = 'http://127.0.0.1:8080';

type Environment = Readonly<Record<string, string | undefined>>;

/** A flag wins over the environment, that over the profile. */
export async function resolveSettings(
  options: GlobalOptions,
  env: Environment,
): Promise<CliSettings> {
  const given = (name: string): string | undefined => {
    const value = env[`QUEUED_CRAWLER_${name}`];
    return value === '' ? undefined : value;
  };
  const profiles = await readProfiles(profilesPath(env));
  const named = options.profile ?? given('PROFILE');
  const profileName = named ?? 'default';
  const found = profiles[profileName];
  if (found === undefined && named !== undefined) {
    throw usageError(`there is no profile "${named}" in ${profilesPath(env)}; see init`);
  }
  const profile = found ?? {};
  const url = options.url ?? given('URL') ?? profile.url ?? DEFAULT_URL;
  if (!/^https?:\/\/./.test(url) || !URL.canParse(url)) {
    throw usageError(`the URL of the service must begin with http:// or https://, not "${url}"`);
  }
  const normal = given('TOKEN') ?? profile.token;
  const javascript = given('JAVASCRIPT_TOKEN') ?? profile.javascript_token;
  const caFile = options.ca ?? given('CA') ?? profile.ca;
  return {
    url,
    token: options.token ?? (options.javascript === true ? javascript : normal),
    javascriptToken: javascript,
    adminToken: options.adminToken ?? given('ADMIN_TOKEN') ?? profile.admin_token,
    httpVersion: options.http1 === true || given('HTTP1') !== undefined ? '1.1' : '2',
    ca: caFile === undefined ? undefined : await readCa(caFile),
    profileName,
    hasProfile: found !== undefined,
    profile,
  };
}

/** Makes a client of the service that the settings name. */
export function clientOf(
  { url, httpVersion, ca }: Pick<CliSettings, 'url' | 'httpVersion' | 'ca'>,
  token: string,
  retries: RetryOptions,
): CrawlerClient {
  return createCrawlerClient({ baseUrl: url, token, httpVersion, retries, ...defined({ ca }) });
}

async function readCa(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw usageError(`the certificate authority cannot be read: ${fileFailureText(error, path)}`);
  }
}
