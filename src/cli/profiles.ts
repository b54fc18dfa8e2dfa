import { chmod, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isJsonObject } from '../domain/is-json-object.ts';
import { makeFolder } from '../domain/make-folder.ts';
import { usageError } from './cli-error.ts';

/** What a profile keeps. */
export interface Profile {
  readonly url?: string;
  readonly token?: string;
  readonly javascript_token?: string;
  readonly admin_token?: string;
  /** PEM file of the certificate authority of the service. */
  readonly ca?: string;
  /** Whether `serve` gives these tokens to the service that it starts. */
  readonly local?: boolean;
}

/** Every field that a profile may have, with the type of its value. */
const FIELDS: Readonly<Record<keyof Profile, 'string' | 'boolean'>> = {
  url: 'string',
  token: 'string',
  javascript_token: 'string',
  admin_token: 'string',
  ca: 'string',
  local: 'boolean',
};

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the profiles are: `QUEUED_CRAWLER_PROFILES`, else in the user's folder of settings. */
export function profilesPath(env: Environment): string {
  const { QUEUED_CRAWLER_PROFILES: own, XDG_CONFIG_HOME: config, HOME: home = '.' } = env;
  if (own !== undefined && own !== '') return own;
  const folder = config === undefined || config === '' ? join(home, '.config') : config;
  return join(folder, 'queued-crawler', 'profiles.json');
}

/**
 * Reads all profiles by name; none when there is no file. Throws a CliError for a file that others
 * may read, for it has tokens, and for one that is not as `writeProfile` wrote it.
 */
export async function readProfiles(path: string): Promise<Readonly<Record<string, Profile>>> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return {};
  if (!found.isFile()) throw usageError(`${path} is not a file`);
  if ((found.mode & 0o077) !== 0 && process.platform !== 'win32') {
    throw usageError(`${path} has tokens and can be read by others: chmod 600 it`);
  }
  let parsed: unknown;
  const text = await readFile(path, 'utf8');
  try {
    parsed = JSON.parse(text);
  } catch {
    throw usageError(`${path} is not JSON`);
  }
  if (!isJsonObject(parsed)) throw usageError(`${path}: must be an object from name to profile`);
  for (const [name, profile] of Object.entries(parsed)) checkProfile(path, name, profile);
  return parsed as Readonly<Record<string, Profile>>;
}

/** Adds or replaces a profile. Only the user can read the file. */
export async function writeProfile(path: string, name: string, profile: Profile): Promise<void> {
  const profiles = { ...(await readProfiles(path)), [name]: profile };
  await makeFolder(dirname(path));
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, `${JSON.stringify(profiles, undefined, 2)}\n`, { mode: 0o600 });
  await chmod(fresh, 0o600);
  await rename(fresh, path);
}

function checkProfile(path: string, name: string, profile: unknown): void {
  if (!isJsonObject(profile)) throw usageError(`${path}: ${name} must be an object`);
  for (const [field, value] of Object.entries(profile)) {
    const type = FIELDS[field as keyof Profile];
    if (type === undefined) throw usageError(`${path}: ${name}.${field} is unknown`);
    if (typeof value !== type) throw usageError(`${path}: ${name}.${field} must be a ${type}`);
  }
}
