import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { baseImages } from './image/base-images.ts';
import { checkImage } from './image/check-image.ts';
import { type ProjectManifest, repositoryUrl } from './package/manifest.ts';

const HELP = `Usage: npm run image -- [--check] [--archive FOLDER]

Builds the images of deploy/Dockerfile by buildah, as queued-crawler:VERSION and queued-crawler:VERSION-slim.

  --check      runs each as a container runs it: read-only, not root; its health check, and crawls
  --archive    writes them into FOLDER, for docker load

Where no registry of images can be reached it needs mmdebstrap. --check needs root on Linux.
`;

/** Each target of the Dockerfile, and the most megabytes of it on a disk. */
const TARGETS = [
  { target: 'slim', suffix: '-slim', hasBrowser: false, maxMegabytes: 180 },
  { target: '', suffix: '', hasBrowser: true, maxMegabytes: 450 },
] as const;

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({
  options: {
    check: { type: 'boolean', default: false },
    archive: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await makeImages();

async function makeImages(): Promise<void> {
  const missing = whatIsMissing();
  if (missing !== undefined) {
    console.log(`SKIPPED: the image is neither built nor tried, for ${missing}`);
    return;
  }
  const project = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as ProjectManifest;
  const base = baseImages(buildah);
  for (const { target, suffix, hasBrowser, maxMegabytes } of TARGETS) {
    const name = `queued-crawler:${project.version}${suffix}`;
    const args = {
      NODE_IMAGE: base.node,
      DEBIAN_IMAGE: base.debian,
      VERSION: project.version,
      SOURCE: repositoryUrl(project, process.env) ?? 'unknown',
    };
    const options = ['--isolation', 'chroot', '--format', 'docker', '--layers'];
    options.push('--file', 'deploy/Dockerfile', '--tag', name);
    if (target !== '') options.push('--target', target);
    for (const [key, value] of Object.entries(args)) options.push('--build-arg', `${key}=${value}`);
    execFileSync('buildah', ['build', ...options, '.'], { cwd: root, stdio: 'inherit' });
    if (values.check) await checkImage(buildah, name, { hasBrowser, maxMegabytes });
    if (values.archive !== undefined) {
      mkdirSync(values.archive, { recursive: true });
      const file = join(values.archive, `${name.replace(':', '-')}.tar`);
      buildah('push', name, `docker-archive:${file}:${name}`);
    }
  }
}

function whatIsMissing(): string | undefined {
  if (spawnSync('buildah', ['--version']).status !== 0) return 'there is no buildah';
  if (!values.check) return undefined;
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'a check needs root on Linux';
  return undefined;
}

function buildah(...args: string[]): string {
  return execFileSync('buildah', args, { encoding: 'utf8', maxBuffer: 64 * 1024 ** 2 }).trim();
}
