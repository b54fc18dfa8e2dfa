/** The oldest Node that the package runs on: undici 8 needs it. The checkout brings Node 24. */
export const OLDEST_NODE = '22.19';

/** What the package is compiled for. */
export const NODE_TARGET = `node${OLDEST_NODE}`;

/** What the project's `package.json` says. */
export interface ProjectManifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly keywords: readonly string[];
  readonly license: string;
  readonly repository?: unknown;
  readonly bin: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const CHROMIUM = '@sparticuz/chromium';

/**
 * The `package.json` of the package, which depends on nothing: what it needs is in it. A browser is
 * an optional peer, so that nobody downloads one unasked. npm accepts a statement of provenance only
 * when `repository` is the place that it was built at.
 */
export function packageManifest(project: ProjectManifest, repository: string | undefined): object {
  const { name, version, description, keywords, license, bin, scripts, dependencies } = project;
  return {
    name,
    version,
    description,
    keywords,
    license,
    ...(repository === undefined
      ? {}
      : { repository: { type: 'git', url: `git+${repository}.git` } }),
    type: 'module',
    bin,
    // The command line reads the options of Node in it.
    scripts: { start: scripts.start },
    exports: {
      './openapi.json': './docs/openapi.json',
      './proto/*': './proto/*',
      './package.json': './package.json',
    },
    files: [
      'bin',
      'docs',
      'gen',
      'proto',
      'src',
      'vendor',
      'CHANGELOG.md',
      'SECURITY.md',
      'THIRD-PARTY-LICENSES.md',
      'sbom.cdx.json',
    ],
    engines: { node: `>=${OLDEST_NODE}` },
    peerDependencies: { [CHROMIUM]: dependencies[CHROMIUM] },
    peerDependenciesMeta: { [CHROMIUM]: { optional: true } },
    publishConfig: { access: 'public', provenance: repository !== undefined },
  };
}

/**
 * The address of the repository, without `.git`: what `package.json` says, else where the workflow
 * runs that builds it. Undefined when neither tells it.
 */
export function repositoryUrl(
  project: ProjectManifest,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const { repository } = project;
  if (typeof repository === 'string') return repository;
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: path } = env;
  return server === undefined || path === undefined ? undefined : `${server}/${path}`;
}
