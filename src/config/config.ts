import { errorText } from '../domain/error-text.ts';
import { type ConfigText, settings } from './settings.ts';

/** The service's configuration, checked. Units are in the names. */
export type Config = {
  readonly [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]['parse']>;
};

/** A setting has a bad value; the message names the variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the configuration from environment variables; an empty one counts as absent. Throws
 * {@link ConfigError} for the first bad value.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries<ConfigText>(settings)) {
    const text = env[setting.variable]?.trim();
    try {
      values[key] = setting.parse(text === undefined || text === '' ? setting.fallback : text);
    } catch (error) {
      throw new ConfigError(`${setting.variable}: ${errorText(error)}`, { cause: error });
    }
  }
  const config = values as Config;
  if ((config.tlsCertFile === '') !== (config.tlsKeyFile === '')) {
    throw new ConfigError('TLS_CERT and TLS_KEY: set both or neither');
  }
  assertTokensDiffer(config);
  return config;
}

/** Throws if two tokens are equal: a client with one would have the rights of both. */
function assertTokensDiffer(config: Config): void {
  const tokens = (['normalToken', 'javascriptToken', 'adminToken', 'metricsToken'] as const).map(
    (name) => ({
      variable: settings[name].variable,
      token: config[name],
    }),
  );
  for (const [index, { variable, token }] of tokens.entries()) {
    const twin = tokens.slice(0, index).find((other) => other.token === token);
    if (token !== '' && twin !== undefined) {
      throw new ConfigError(`${variable}: must differ from ${twin.variable}`);
    }
  }
}

/** The table of settings as text, for `--help`. */
export function describeConfig(): string {
  return Object.values<ConfigText>(settings)
    .map((setting) => `  ${setting.variable}=${setting.fallback}\n      ${setting.meaning}`)
    .join('\n');
}
