const PREFIX = 'original_';

/** The further fields of a result (`screenshot_url`, `original_*`) as its message has them: headers under their own names. */
export function resultExtras(extras: Readonly<Record<string, string>>): {
  readonly screenshotUrl?: string;
  readonly originalHeaders: Record<string, string>;
} {
  const { screenshot_url: screenshotUrl, ...others } = extras;
  const headers = Object.entries(others)
    .filter(([name]) => name.startsWith(PREFIX))
    .map(([name, value]) => [name.slice(PREFIX.length), value] as const);
  return {
    ...(screenshotUrl === undefined ? {} : { screenshotUrl }),
    originalHeaders: Object.fromEntries(headers),
  };
}
