/** A file of the project with a new text. */
export interface Edit {
  readonly path: string;
  readonly text: string;
}

/**
 * What a release changes in the project: its version in each file that names it, and a heading in
 * the changelog. `read` returns the text of a file. Throws when the changelog has nothing new, or
 * `version` is not higher than the one of the project.
 */
export function releaseEdits(
  version: string,
  date: string,
  read: (path: string) => string,
): Edit[] {
  const before = (JSON.parse(read('package.json')) as { version: string }).version;
  if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) {
    throw new Error(`${version} is no version such as 1.2.3`);
  }
  if (version.localeCompare(before, 'en', { numeric: true }) <= 0) {
    throw new Error(`${version} is not higher than ${before}`);
  }
  const versions = [
    ['package.json', /^( {2}"version": ")[^"]+/m],
    // The project's own version is in it twice, before those of packages.
    ['package-lock.json', /^( {2}"version": ")[^"]+/m],
    ['package-lock.json', /^( {4}"": \{\n {6}"name": "[^"]+",\n {6}"version": ")[^"]+/m],
    ['deploy/helm/Chart.yaml', /^(version: ).+/m],
    ['deploy/helm/Chart.yaml', /^(appVersion: ).+/m],
    ['clients/python/pyproject.toml', /^(version = ")[^"]+/m],
    ['docs/clients.md', /(queued-crawler-client-)[\d.]+(?=\.tgz)/],
    ['docs/clients.md', /(queued_crawler-)[\d.]+(?=-py3)/],
  ] as const;
  const texts = new Map<string, string>();
  for (const [path, pattern] of versions) {
    const text = texts.get(path) ?? read(path);
    if (!pattern.test(text)) throw new Error(`${path} names no version`);
    texts.set(path, text.replace(pattern, `$1${version}`));
  }
  texts.set('CHANGELOG.md', releasedChangelog(read('CHANGELOG.md'), version, date));
  return [...texts].map(([path, text]) => ({ path, text }));
}

/** The changelog with its part "Unreleased" under the heading of `version`, and an empty such part. */
export function releasedChangelog(text: string, version: string, date: string): string {
  const heading = '## Unreleased\n';
  const at = text.indexOf(heading);
  const from = at + heading.length;
  const next = text.indexOf('\n## ', from);
  const changes = text.slice(from, next === -1 ? undefined : next);
  if (at === -1 || !/^- /m.test(changes)) throw new Error('the changelog has nothing unreleased');
  return `${text.slice(0, from)}\n## ${version} (${date})\n${text.slice(from)}`;
}
