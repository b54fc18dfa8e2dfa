import { meantName } from '../domain/misspelt-name.ts';
import { type ConfigText, settings } from './settings.ts';

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
      const meant = meantName(name, known) ?? known.find((each) => isSwapped(name, each));
      return meant === undefined ? [] : [`${name} is not a setting: did you mean ${meant}?`];
    });
}

/** Whether two neighbouring letters in another order make `name` the known one. */
function isSwapped(name: string, known: string): boolean {
  if (name.length !== known.length) return false;
  let at = 0;
  while (at < name.length && name[at] === known[at]) at += 1;
  const swapped = name.slice(0, at) + name.charAt(at + 1) + name.charAt(at) + name.slice(at + 2);
  return swapped === known;
}
