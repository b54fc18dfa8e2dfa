const PREFIX = 'original_';

/** The further fields of a result (`screenshot_url`, `screenshot_failed`, `failure`, `original_*`) as its message has them: headers under their own names. */
export function resultExtras(extras: Readonly<Record<string, string>>): {
  readonly screenshotUrl?: string;
  readonly screenshotFailed?: string;
  readonly failure?: string;
  readonly originalHeaders: Record<string, string>;
} {
  const {
    screenshot_url: screenshotUrl,
    screenshot_failed: screenshotFailed,
    failure,
    ...others
  } = extras;
  const headers = Object.entries(others)
    .filter(([name]) => name.startsWith(PREFIX))
    .map(([name, value]) => [name.slice(PREFIX.length), value] as const);
  return {
    ...(screenshotUrl === undefined ? {} : { screenshotUrl }),
    ...(screenshotFailed === undefined ? {} : { screenshotFailed }),
    ...(failure === undefined ? {} : { failure }),
    originalHeaders: Object.fromEntries(headers),
  };
}
