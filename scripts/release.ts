import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ARTIFACTS, writeChecksums } from './release/artifacts.ts';
import { releaseEdits } from './release/prepare.ts';

const HELP = `Usage: npm run release -- [VERSION] [--dry-run] [--out FOLDER] [--without NAMES]

Writes VERSION into the project and its changelog, and makes what is published, in dist/release.
docs/release.md says what to do then.

  --dry-run    changes no file of the project: shows which would be, and builds the version there is
  --out        another folder
  --without    leaves out, separated by commas: ${Object.keys(ARTIFACTS).join(', ')}
`;

const root = join(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    'dry-run': { type: 'boolean', default: false },
    out: { type: 'string', default: join(root, 'dist', 'release') },
    without: { type: 'string', default: '' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await release(positionals[0]);

async function release(version: string | undefined): Promise<void> {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  if (version !== undefined) {
    const today = new Date().toISOString().slice(0, 10);
    for (const { path, text } of releaseEdits(version, today, read)) {
      console.log(`${values['dry-run'] ? 'would write' : 'wrote'} ${version} into ${path}`);
      if (!values['dry-run']) writeFileSync(join(root, path), text);
    }
  }
  const out = resolve(values.out);
  await rm(out, { recursive: true, force: true });
  const without = values.without.split(',');
  for (const [name, make] of Object.entries(ARTIFACTS)) {
    const folder = join(out, name);
    await mkdir(folder, { recursive: true });
    const missing = without.includes(name) ? 'as told' : await make(root, folder);
    if (missing !== undefined) await rm(folder, { recursive: true });
    console.log(missing === undefined ? `made ${name}` : `LEFT OUT ${name}: ${missing}`);
  }
  // Unpacked packages are in their tarballs.
  await rm(join(out, 'package', 'built'), { recursive: true, force: true });
  await writeChecksums(out);
  console.log(`all is in ${out}; docs/release.md says what to do now`);
}
