import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The images that the Dockerfile starts from. */
export interface BaseImages {
  readonly node: string;
  readonly debian: string;
}

const PUBLISHED: BaseImages = { node: 'node:24-bookworm-slim', debian: 'debian:bookworm-slim' };
const OWN: BaseImages = {
  node: 'localhost/queued-crawler-base-node',
  debian: 'localhost/queued-crawler-base-debian',
};

const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * The published images where a registry can be reached, else ones that are made of Debian's packages
 * by `mmdebstrap` and the Node of this project. Throws when neither is possible.
 */
export function baseImages(buildah: (...args: string[]) => string): BaseImages {
  const isThere = (image: string): boolean =>
    spawnSync('buildah', ['inspect', '--type', 'image', image]).status === 0;
  const pulls = (image: string): boolean =>
    spawnSync('buildah', ['pull', '--quiet', `docker.io/library/${image}`], { timeout: 120_000 })
      .status === 0;
  if (pulls(PUBLISHED.debian) && pulls(PUBLISHED.node)) return PUBLISHED;
  if (isThere(OWN.debian) && isThere(OWN.node)) return OWN;
  console.log('no registry of images can be reached: a base is made of the packages of Debian');
  const folder = mkdtempSync(join(tmpdir(), 'queued-crawler-base-'));
  try {
    const tar = join(folder, 'debian.tar');
    execFileSync(
      'mmdebstrap',
      ['--variant=minbase', '--include=ca-certificates', 'bookworm', tar],
      {
        stdio: 'inherit',
      },
    );
    const debian = buildah('from', 'scratch');
    buildah('add', debian, tar, '/');
    buildah('commit', '--rm', debian, OWN.debian);
    copyNode(join(folder, 'node'));
    const node = buildah('from', OWN.debian);
    buildah('add', node, join(folder, 'node'), '/usr/local');
    const env = ['PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'];
    if (existsSync(AUTHORITIES)) {
      // Those that this machine trusts in addition, such as a company's. The images get none of them.
      buildah('copy', node, AUTHORITIES, AUTHORITIES);
      env.push(`NODE_EXTRA_CA_CERTS=${AUTHORITIES}`);
    }
    buildah('config', ...env.flatMap((pair) => ['--env', pair]), node);
    buildah('commit', '--rm', node, OWN.node);
    return OWN;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Copies this Node, and the npm on PATH, as Node's own archive has them. */
function copyNode(folder: string): void {
  mkdirSync(join(folder, 'bin'), { recursive: true });
  copyFileSync(process.execPath, join(folder, 'bin', 'node'));
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  const own = dirname(dirname(realpathSync(npm)));
  if (!existsSync(join(own, 'bin', 'npm-cli.js'))) throw new Error(`${npm} is not npm`);
  cpSync(own, join(folder, 'lib', 'node_modules', 'npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(folder, 'bin', 'npm'));
}
