import { execFile, spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { isLong } from '../support/length.ts';

const canBuild = spawnSync('buildah', ['--version']).status === 0 && process.getuid?.() === 0;
const TWENTY_MINUTES_MS = 1_200_000;

test.runIf(isLong && canBuild)(
  'the images run read-only and not as root, are healthy and crawl (needs buildah, and root)',
  async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['scripts/image.ts', '--check'],
      { cwd: resolve(import.meta.dirname, '../..'), maxBuffer: 64 * 1024 ** 2 },
    );
    expect(stdout.match(/healthy, and crawls as it should/g)).toHaveLength(2);
  },
  TWENTY_MINUTES_MS,
);
