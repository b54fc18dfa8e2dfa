import { settings } from '../src/config/settings.ts';

const rows = Object.values(settings).map(({ variable, fallback, meaning }) => {
  const value = fallback === '' ? '' : `\`${fallback}\``;
  return `| \`${variable}\` | ${value} | ${meaning} |`;
});

/** The settings as the README shows them. */
export const settingsTable = `| variable | default | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;

const place = /\| variable \| default \| meaning \|\n(\|.*\n)+/;

/** The README with its table of settings brought up to date. Throws when it has none. */
export function withSettings(readme: string): string {
  if (!place.test(readme)) throw new Error('the README has no table of settings');
  return readme.replace(place, () => settingsTable);
}
