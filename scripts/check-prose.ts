import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { markdownPassages } from './prose/markdown.ts';
import { complaintsOf, type Passage } from './prose/rules.ts';
import { lineCommentPassages, sourcePassages } from './prose/source.ts';

// Reports sentences of more than 30 words, and expressions that have a plainer word, in Markdown,
// comments, test titles and texts for people. `node scripts/check-prose.ts [--count] [PATH ...]`; default: all files.

const root = resolve(import.meta.dirname, '..');
/** Generated code, pages that tests crawl, and files of others. */
const LEFT_OUT = /^(?:gen|test\/fixtures|proto\/google)\//;

const readers: Readonly<Record<string, (name: string, source: string) => Passage[]>> = {
  '.md': (_name, source) => markdownPassages(source),
  '.ts': sourcePassages,
  '.tsx': sourcePassages,
  '.js': sourcePassages,
  '.mjs': sourcePassages,
  '.proto': (_name, source) => lineCommentPassages(source),
};

function main(): void {
  const { values, positionals } = parseArgs({
    options: { count: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...positionals], {
    cwd: root,
    encoding: 'utf8',
  });
  let total = 0;
  for (const name of listed.split('\n').filter((each) => each !== '' && !LEFT_OUT.test(each))) {
    const read = readers[extname(name)];
    if (read === undefined) continue;
    const complaints = read(name, readFileSync(join(root, name), 'utf8')).flatMap(complaintsOf);
    total += complaints.length;
    if (values.count && complaints.length > 0) console.log(`${complaints.length}\t${name}`);
    else for (const { line, message } of complaints) console.log(`${name}:${line}: ${message}`);
  }
  console.log(`prose: ${total} complaints`);
  if (total > 0) process.exitCode = 1;
}

main();
