import { settings } from '../src/config/settings.ts';

const rows = Object.values(settings).map(({ variable, fallback, meaning }) => {
  const value = fallback === '' ? '' : `\`${fallback}\``;
  return `| \`${variable}\` | ${value} | ${meaning} |`;
});

/** The table of settings in the README. */
export const settingsTable = `| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;

const place = /\| variable \| default \| meaning \|\n(\|.*\n)+/;

/** Returns the README with an updated table of settings. Throws an Error when it has none. */
export function withSettings(readme: string): string {
  if (!place.test(readme)) throw new Error('the README has no table of settings');
  return readme.replace(place, () => settingsTable);
}
