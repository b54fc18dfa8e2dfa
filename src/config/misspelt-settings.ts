import { distance } from 'fastest-levenshtein';
import { type ConfigText, settings } from './settings.ts';

/** Most characters by which a name may differ from the setting that is meant. */
const MAX_TYPOS = 3;

/**
 * Warnings for environment variables that are no settings, but nearly have the name of one. Their
 * values may be secrets: none is told. Names of OpenTelemetry are left out, as it has more of them than
 * the service reads.
 */
export function misspeltSettings(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = Object.values<ConfigText>(settings).map(({ variable }) => variable);
  return Object.keys(env)
    .filter((name) => /^[A-Z][A-Z_]+$/.test(name) && !name.startsWith('OTEL_'))
    .filter((name) => !known.includes(name))
    .flatMap((name) => {
      const meant = known.find(
        (setting) => distance(name, setting) <= Math.min(MAX_TYPOS, Math.floor(setting.length / 4)),
      );
      return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
    });
}
