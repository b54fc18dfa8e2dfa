import { settings } from '../src/config/settings.ts';

/** The document of all settings. */
export function settingsDocument(): string {
  const rows = Object.values(settings).map(({ variable, fallback, meaning }) => {
    const value = fallback === '' ? '' : `\`${fallback}\``;
    return `| \`${variable}\` | ${value} | ${meaning} |`;
  });
  return [
    '# Settings',
    '',
    'Settings are environment variables. `npm start -- --help` lists them, too. An unusable value stops the start and names the variable.',
    '',
    '| variable | default | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
