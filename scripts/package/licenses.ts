import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A package whose code is in ours. */
export interface VendoredPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  /** The folder it was taken from. */
  readonly folder: string;
}

/** The packages that have these files. Throws for one that names no license. */
export async function packagesOf(files: Iterable<string>): Promise<VendoredPackage[]> {
  const folders = new Set<string>();
  for (const path of files) {
    const [, folder] = FOLDER.exec(path.replaceAll('\\', '/')) ?? [];
    if (folder !== undefined) folders.add(folder);
  }
  const found = new Map<string, VendoredPackage>();
  for (const folder of [...folders].sort()) {
    const { name, version, license } = JSON.parse(
      await readFile(join(folder, 'package.json'), 'utf8'),
    ) as { name: string; version: string; license?: string };
    if (license === undefined) throw new Error(`${name} names no license`);
    found.set(`${name}@${version}`, { name, version, license, folder });
  }
  return [...found.values()];
}

const FOLDER = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;
const TEXT = /^(licen[cs]e|copying|notice)([.-][\w.-]+)?$/i;

/** The document that names the packages in ours, each with its license. */
export async function licensesDocument(packages: readonly VendoredPackage[]): Promise<string> {
  const parts = ['# Licenses of the packages in this package'];
  for (const { name, version, license, folder } of packages) {
    parts.push(`## ${name} ${version}`, `License: ${license}`);
    for (const file of (await readdir(folder)).sort()) {
      if (!TEXT.test(file)) continue;
      const text = (await readFile(join(folder, file), 'utf8')).trimEnd();
      parts.push(`\`\`\`\n${text.replaceAll('```', "'''")}\n\`\`\``);
    }
  }
  return `${parts.join('\n\n')}\n`;
}
